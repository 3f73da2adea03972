// The backward pass in two halves: together they are the whole one, and before the second no
// parameter has a gradient.
#include "models/cpu_kernels/deferred_weight_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/workload.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::deferred_weight_gradients_test {
namespace {

using Gradients = std::map<std::string, at::Tensor>;

Gradients gradients_of(const Model& model) {
  Gradients all;
  for (const auto& [name, tensor] : parameters(model.layers)) {
    if (tensor.grad().defined()) all[name] = tensor.grad();
  }
  return all;
}

/// Model, and whether by the reference kernels.
class SplitBackward : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(SplitBackward, IsTheWholeOne) {
  const SingleThread single_thread;
  const auto [name_of_model, reference] = GetParam();
  const ReferenceKernelsGuard kernels(reference);
  const bool tokens = name_of_model.starts_with("gpt");
  const Workload workload({.model = name_of_model,
                           .batch = 3,
                           .image_size = name_of_model.starts_with("resnet") ? 64 : 0,
                           .width = 0.25,
                           .dtype = at::kDouble,
                           .loss = tokens ? Loss::cross_entropy : Loss::mse});
  const Batch batch = workload.make_batch(0);
  const Model whole = workload.make_model();
  const auto loss_of = [&](const Model& model) {
    return workload.loss(forward(model.layers, batch.inputs), batch.targets, 0.5);
  };
  loss_of(whole).backward();
  loss_of(whole).backward();

  const Model split = workload.make_model();
  for (int pass = 0; pass < 2; ++pass) {
    const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
    at::Tensor loss;
    {
      const DeferWeightGradientsGuard deferring(deferred);
      loss = loss_of(split);
    }
    const auto before = gradients_of(split).size();
    loss.backward();
    EXPECT_EQ(gradients_of(split).size(), before);
    EXPECT_EQ(deferred->size(), parameters(split.layers).size());
    deferred->run();
    EXPECT_EQ(deferred->size(), 0U);
  }
  const Gradients found = gradients_of(split);
  for (const auto& [name, expected] : gradients_of(whole)) {
    ASSERT_TRUE(found.contains(name)) << name;
    const double scale = expected.abs().max().item<double>();
    EXPECT_LE((found.at(name) - expected).abs().max().item<double>(), 1e-11 * scale) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SplitBackward,
                         testing::Combine(testing::Values("toy", "mlp", "resnet18", "resnet50",
                                                          "gpt-tiny"),
                                          testing::Bool()),
                         [](const auto& instance) {
                           std::string name = std::get<0>(instance.param);
                           std::ranges::replace(name, '-', '_');
                           return name + (std::get<1>(instance.param) ? "_reference" : "_own");
                         });

TEST(DeferredWeightGradients, TheInputsGradientDoesNotWait) {
  const at::Tensor weight = at::ones({2, 3}).requires_grad_(true);
  const at::Tensor x = at::ones({4, 3}).requires_grad_(true);
  const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
  {
    const DeferWeightGradientsGuard deferring(deferred);
    EXPECT_EQ(current_deferred_weight_gradients(), deferred);
    models::linear(x, weight, {}).sum().backward();
  }
  EXPECT_FALSE(current_deferred_weight_gradients());
  EXPECT_TRUE(at::equal(x.grad(), at::full({4, 3}, 2.0)));
  EXPECT_FALSE(weight.grad().defined());
  deferred->run();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({2, 3}, 4.0)));
}

// What a gradient waits for is in flight while the one before it is computed.
TEST(DeferredWeightGradients, BeginOneAheadOfTheirTurn) {
  const at::Tensor weight = at::zeros({2}).requires_grad_(true);
  const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
  std::string order;
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) {
    const bool waits = name == 'b' || name == 'd' || name == 'e';
    std::function<void()> begin;
    if (waits) begin = [&order, name] { order += std::string("(") + name; };
    deferred->defer(
        weight,
        [&order, name] {
          order += name;
          return at::ones({2});
        },
        begin);
  }
  deferred->run();
  EXPECT_EQ(order, "(ba(dbc(ede");
  EXPECT_TRUE(at::equal(weight.grad(), at::full({2}, 5.0)));
}

}  // namespace
}  // namespace stratagem::models::deferred_weight_gradients_test
