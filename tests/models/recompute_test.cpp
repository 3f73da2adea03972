// Repeated forward passes: the gradients of the first one, without the last product of a block.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/dropout.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/cpu_kernels/remade_inputs.h"
#include "models/workload.h"
#include "tests/models/filled_model.h"
#include "tests/models/reference_values.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::recompute_test {
namespace {

using LayerPass = at::Tensor (Layer::*)(const at::Tensor&);

Workload workload_of(const std::string& model, at::ScalarType type) {
  return Workload({.model = model,
                   .batch = 2,
                   .dtype = type,
                   .loss = Loss::cross_entropy,
                   .dropout = find_model(model).has_dropout ? 0.2 : 0});
}

/// Returns the gradients of the input and of the parameters.
std::vector<at::Tensor> gradients_of(Layer& block, at::ScalarType type, LayerPass pass, bool split,
                                     RemadeInputs remade) {
  for (const NamedTensor& parameter : block.parameters()) parameter.tensor.mutable_grad().reset();
  const at::Tensor input = uniform(1, {2, 32, 64}).to(type).requires_grad_(true);
  const auto deferred =
      split ? c10::make_intrusive<DeferredWeightGradients>() : DeferredWeightGradientsPointer();
  at::Tensor output;
  {
    const SamplePlaceGuard place({.seed = 7});
    const DeferWeightGradientsGuard deferring(deferred);
    const RemadeInputsGuard remaking(remade);
    output = (block.*pass)(input);
  }
  output.backward(uniform(2, {2, 32, 64}).to(type));
  if (deferred) deferred->run();
  std::vector<at::Tensor> gradients = {input.grad()};
  for (const NamedTensor& parameter : block.parameters()) {
    gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

/// Model, and whether in float32, by the reference kernels, with the backward pass in halves.
class RepeatedBlock : public testing::TestWithParam<std::tuple<std::string, bool, bool, bool>> {};

TEST_P(RepeatedBlock, HasTheBitsOfTheGradients) {
  const SingleThread single_thread;
  const auto [name, in_float, reference, split] = GetParam();
  const ReferenceKernelsGuard kernels(reference);
  const at::ScalarType type = in_float ? at::kFloat : at::kDouble;
  const Model model = workload_of(name, type).make_model();
  Layer& block = *model.layers.at(1);
  for (const RemadeInputs remade : {RemadeInputs::never, RemadeInputs::with_the_gradient}) {
    const auto expected = gradients_of(block, type, &Layer::forward, split, remade);
    const auto found = gradients_of(block, type, &Layer::recompute, split, remade);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_TRUE(found[i].defined() && expected[i].defined()) << i;
      EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
    }
  }
}

std::string name_of(const testing::TestParamInfo<RepeatedBlock::ParamType>& instance) {
  const auto& [name, in_float, reference, split] = instance.param;
  std::string text = name + (in_float ? "_float32" : "_float64") +
                     (reference ? "_reference" : "_own") + (split ? "_split" : "_whole");
  std::ranges::replace(text, '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Models, RepeatedBlock,
                         testing::Combine(testing::Values("gpt-tiny", "llama-tiny"),
                                          testing::Bool(), testing::Bool(), testing::Bool()),
                         name_of);

using LayersPass = at::Tensor (*)(LayerSpan, const at::Tensor&);

/// Returns whether the output of the embedding and two blocks is finite if the weight of the last
/// product in layer `spoiled` is not.
bool is_finite(const std::string& name, std::size_t spoiled, LayersPass pass) {
  const Workload workload = workload_of(name, at::kDouble);
  const Model model = workload.make_model();
  for (const NamedTensor& parameter : model.layers.at(spoiled)->parameters()) {
    const at::NoGradGuard no_gradient;
    if (!parameter.name.ends_with("mlp.down.weight")) continue;
    parameter.tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  const SamplePlaceGuard place({.seed = 7});
  const at::Tensor output = pass(LayerSpan(model.layers).first(3), workload.make_batch(0).inputs);
  return at::isfinite(output).all().item<bool>();
}

TEST(RepeatedPass, OmitsTheProductOfTheLastBlockOnly) {
  for (const char* model : {"gpt-tiny", "llama-tiny"}) {
    for (const bool reference : {false, true}) {
      SCOPED_TRACE(testing::Message() << model << (reference ? ", reference" : ""));
      const ReferenceKernelsGuard kernels(reference);
      EXPECT_FALSE(is_finite(model, 2, forward));
      EXPECT_TRUE(is_finite(model, 2, recompute));
      EXPECT_FALSE(is_finite(model, 1, recompute));
    }
  }
}

TEST(RepeatedPass, RunsABatchNormAndItsReluAsOne) {
  const SingleThread single_thread;
  const Model model = filled_model("resnet18", {.width = 0.125});
  const LayerSpan layers = LayerSpan(model.layers).first(3);
  const at::Tensor input = at::randn({2, 3, 32, 32});
  const at::Tensor expected = forward(layers, input);
  const at::Tensor found = recompute(layers, input);
  EXPECT_TRUE(at::equal(found, expected));
  EXPECT_EQ(found.grad_fn()->name(), expected.grad_fn()->name());
}

/// Returns the operations of layers that take [2, 128, 512].
PassFlops flops_of(const std::string& name, std::size_t first, std::size_t count) {
  const Model model = find_model(name).make({});
  return flops(LayerSpan(model.layers).subspan(first, count), {2, 128, 512}, true);
}

TEST(RepeatedPass, CountsAllButTheLastProduct) {
  constexpr double positions = 2 * 128;
  constexpr double attention = 2 * 2 * positions * 128 * 512;
  // Outputs of query, key and value, of the projection, and of the MLP's first product.
  const double of_gpt = 2 * positions * 512 * (3 * 512 + 512 + 2048) + attention;
  const double of_llama = 2 * positions * 512 * (1024 + 512 + 2 * 1408) + attention;
  EXPECT_DOUBLE_EQ(flops_of("gpt-small", 1, 1).repeated(/*output_is_read=*/false), of_gpt);
  EXPECT_DOUBLE_EQ(flops_of("llama-small", 1, 1).repeated(/*output_is_read=*/false), of_llama);
}

TEST(RepeatedPass, CountsProductsWhoseOutputsAreRead) {
  const PassFlops one = flops_of("gpt-small", 1, 1);
  EXPECT_DOUBLE_EQ(one.unread, 2.0 * 2 * 128 * 2048 * 512);
  EXPECT_EQ(one.repeated(/*output_is_read=*/true), one.forward);
  EXPECT_EQ(flops_of("gpt-small", 1, 2).repeated(/*output_is_read=*/false),
            2 * one.forward - one.unread);
  EXPECT_EQ(flops_of("gpt-small", 8, 2).repeated(/*output_is_read=*/false), one.forward)
      << "a block and the last norm";
}

}  // namespace
}  // namespace stratagem::models::recompute_test
