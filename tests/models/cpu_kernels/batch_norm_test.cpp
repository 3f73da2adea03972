#include "models/cpu_kernels/batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/basic_layers.h"
#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/model.h"
#include "models/resnet.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::batch_norm_test {
namespace {

struct Case {
  at::Tensor x;
  at::Tensor addend;  // may be undefined
  bool relu = false;
  std::int64_t channels() const { return x.size(1); }
};

struct Result {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  // of x, weight, bias and the addend
  std::vector<at::Tensor> running;    // mean and variance
  std::vector<at::Tensor> leaves;     // weight and bias
};

at::Tensor leaf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().clone().requires_grad_(true) : tensor;
}

BatchNormTensors tensors_of(const Case& one) {
  const at::Tensor ramp = at::arange(one.channels(), one.x.options()) / one.channels();
  return {leaf(0.5 + ramp), leaf(0.3 - ramp), (0.1 * ramp).clone(), (1 + ramp).clone()};
}

// Some gradient of the output, and nothing where the ReLU's mask is a matter of rounding.
at::Tensor gradient_of(const Case& one) {
  const ReferenceKernelsGuard atens;
  const auto exact = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(at::kDouble) : tensor;
  };
  const Case precise{exact(one.x), exact(one.addend), false};
  const at::Tensor y =
      batch_norm(precise.x, tensors_of(precise), {}, {precise.addend, precise.relu}).detach();
  const at::Tensor gradient = at::cos(at::arange(y.numel(), y.options())).view(y.sizes());
  return (gradient * (y.abs() > 1e-3)).to(one.x.options());
}

Result run(const Case& one, bool own, const DeferredWeightGradientsPointer& deferred = {}) {
  const ReferenceKernelsGuard guard(!own);
  const DeferWeightGradientsGuard deferring(deferred);
  const at::Tensor x = leaf(one.x);
  const at::Tensor addend = leaf(one.addend);
  const BatchNormTensors tensors = tensors_of(one);
  // Not the leaves themselves: ATen's way adds and rectifies in place.
  const at::Tensor y =
      batch_norm(x.mul(1), tensors, {}, {addend.defined() ? addend.mul(1) : addend, one.relu});
  y.backward(gradient_of(one));
  Result result{y.detach(),
                {x.grad(), tensors.weight.grad(), tensors.bias.grad()},
                {tensors.running_mean, tensors.running_var},
                {tensors.weight, tensors.bias}};
  if (addend.defined()) result.gradients.push_back(addend.grad());
  return result;
}

// Each value is a sum of up to `terms` numbers of about one; each addition may round, in an order
// that depends on the processor's vectors.
void expect_close(const at::Tensor& actual, const at::Tensor& expected, std::int64_t terms = 1) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const bool is_double = actual.scalar_type() == at::kDouble;
  const double rounding =
      is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double relative = is_double ? 1e-12 : 2e-5;
  const double absolute = rounding * static_cast<double>(terms);  // they may cancel each other
  const double largest = expected.abs().max().item<double>();
  EXPECT_LE((actual - expected).abs().max().item<double>(),
            relative * largest + absolute * std::max(largest, 1.0));
}

void expect_close(const Result& actual, const Result& expected) {
  expect_close(actual.output, expected.output);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  const std::int64_t positions = expected.output.numel() / expected.output.size(1);
  for (std::size_t i = 0; i < actual.gradients.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "gradient " << i);
    const bool is_a_parameters = i == 1 || i == 2;  // a sum over all positions
    expect_close(actual.gradients[i], expected.gradients[i], is_a_parameters ? positions : 1);
  }
  expect_close(actual.running[0], expected.running[0]);
  expect_close(actual.running[1], expected.running[1]);
}

at::Tensor images(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  return (2 * at::randn(shape, dtype) + 0.7).contiguous(at::MemoryFormat::ChannelsLast);
}

// Number format; channels; image side; what stands behind: 0 nothing, 1 a ReLU, 2 a sum and a ReLU,
// 3 a sum.
using Parameters = std::tuple<at::ScalarType, std::int64_t, std::int64_t, int>;
class BatchNormEquals : public testing::TestWithParam<Parameters> {
 protected:
  static Case make() {
    const auto [dtype, channels, side, after] = GetParam();
    Case one{images({3, channels, side, side}, dtype), {}, after == 1 || after == 2};
    if (after >= 2) one.addend = images({3, channels, side, side}, dtype);
    return one;
  }
};

TEST_P(BatchNormEquals, Atens) {
  const SingleThread single_thread;
  const Case one = make();
  expect_close(run(one, true), run(one, false));
}

TEST_P(BatchNormEquals, ItselfWithItsWeightGradientsLater) {
  const SingleThread single_thread;
  const Case one = make();
  const Result whole = run(one, true);
  const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
  const Result split = run(one, true, deferred);
  EXPECT_FALSE(split.gradients[1].defined()) << "no parameter has a gradient before W";
  EXPECT_EQ(deferred->size(), 2U);
  deferred->run();
  EXPECT_TRUE(split.output.equal(whole.output));
  ASSERT_EQ(split.gradients.size(), whole.gradients.size());
  const std::array now = {split.gradients[0], split.leaves[0].grad(), split.leaves[1].grad()};
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].equal(whole.gradients[i])) << i;
}

// Enough rows for each of three threads.
TEST(BatchNorm, OnSeveralThreadsEqualsAtens) {
  const SingleThread restores_their_number;
  at::set_num_threads(3);
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor x = images({5, 33, 29, 29}, dtype);
    for (const at::Tensor& addend : {at::Tensor(), images({5, 33, 29, 29}, dtype)}) {
      for (const bool relu : {false, true}) {
        const Case one{x, addend, relu};
        expect_close(run(one, true), run(one, false));
      }
    }
  }
}

// Fewer rows than are summed at once, and many more; channels that fill vectors and that do not.
INSTANTIATE_TEST_SUITE_P(Shapes, BatchNormEquals,
                         testing::Combine(testing::Values(at::kFloat, at::kDouble),
                                          testing::Values(1, 3, 16, 70), testing::Values(2, 37),
                                          testing::Values(0, 1, 2, 3)));

TEST(BatchNorm, IsOneNodeWhereItCanBe) {
  const SingleThread single_thread;
  const auto node_of = [](const at::Tensor& x) {
    const Case one{x, {}, true};
    return batch_norm(leaf(x), tensors_of(one), {}, {{}, true}).grad_fn()->name();
  };
  const at::Tensor x = images({2, 8, 4, 4}, at::kFloat);
  EXPECT_NE(node_of(x).find("BatchNormFunction"), std::string::npos) << node_of(x);
  EXPECT_EQ(node_of(x.contiguous()).find("BatchNormFunction"), std::string::npos);
  EXPECT_EQ(node_of(x.to(at::kBFloat16)).find("BatchNormFunction"), std::string::npos);
  at::set_num_threads(2);
  EXPECT_NE(node_of(x).find("BatchNormFunction"), std::string::npos);
  const ReferenceKernelsGuard off;
  EXPECT_EQ(node_of(x).find("BatchNormFunction"), std::string::npos);
}

TEST(BatchNorm, EvaluationTakesTheRunningStatistics) {
  const Case one{images({2, 8, 4, 4}, at::kDouble), {}, true};
  const BatchNormTensors tensors = tensors_of(one);
  const at::Tensor before = tensors.running_mean.clone();
  const at::Tensor y = batch_norm(one.x, tensors, {.training = false}, {{}, true});
  const auto column = [](const at::Tensor& values) { return values.view({1, -1, 1, 1}); };
  const at::Tensor expected =
      (one.x - column(before)) / (column(tensors.running_var) + 1e-5).sqrt();
  expect_close(y.detach(),
               (expected * column(tensors.weight) + column(tensors.bias)).relu().detach());
  EXPECT_TRUE(tensors.running_mean.equal(before));
}

// A mean that is large beside the deviation loses no digits to cancellation.
TEST(BatchNorm, KeepsSmallDeviationsFromALargeMean) {
  const SingleThread single_thread;
  const at::Tensor x = (images({8, 4, 16, 16}, at::kDouble) * 1e-2 + 50).to(at::kFloat);
  const BatchNormOptions now{.momentum = 1};  // the running statistics are this batch's
  const BatchNormTensors found = tensors_of({x, {}, false});
  const at::Tensor y = batch_norm(x, found, now).detach();
  const BatchNormTensors expected = tensors_of({x.to(at::kDouble), {}, false});
  const ReferenceKernelsGuard atens;
  const at::Tensor exact = batch_norm(x.to(at::kDouble), expected, now).detach();
  const auto off = [](const at::Tensor& a, const at::Tensor& b) {
    return ((a.to(at::kDouble) - b) / b.abs().max()).abs().max().item<double>();
  };
  EXPECT_LE(off(found.running_var, expected.running_var), 1e-5);
  EXPECT_LE(off(found.running_mean, expected.running_mean), 1e-7);
  // x * scale + shift rounds at 50 / 0.02: what float32 has left of a deviation.
  EXPECT_LE(off(y, exact), 5e-4);
}

TEST(BatchNorm, WhatIsNotANumberStaysVisible) {
  const SingleThread single_thread;
  const at::Tensor x = images({2, 4, 4, 4}, at::kFloat);
  x[0][1][2][2] = std::numeric_limits<float>::quiet_NaN();
  for (const at::Tensor& addend : {at::Tensor(), at::zeros_like(x)}) {
    const at::Tensor in = leaf(x);
    const BatchNormTensors tensors = tensors_of({x, addend, true});
    const at::Tensor y = batch_norm(in, tensors, {}, {addend, true});
    y.backward(at::ones_like(y));
    for (const at::Tensor& values : {y, in.grad()}) {
      EXPECT_TRUE(values.select(1, 1).isnan().all().item<bool>());
      EXPECT_FALSE(values.select(1, 0).isnan().any().item<bool>());
    }
    EXPECT_EQ(tensors.bias.grad()[1].item<float>(), 2 * 16) << "the mask lets it through";
  }
}

TEST(BatchNorm, WhatDoesNotFitIsAtens) {
  const SingleThread single_thread;
  const at::Tensor x = images({2, 8, 4, 4}, at::kFloat);
  const Case one{x, {}, true};
  BatchNormTensors tensors = tensors_of(one);
  const auto node = [&](const at::Tensor& in, const at::Tensor& addend) {
    return batch_norm(leaf(in), tensors, {}, {addend, true}).grad_fn()->name();
  };
  EXPECT_NE(node(x, images({2, 8, 4, 4}, at::kFloat)).find("BatchNormFunction"), std::string::npos);
  EXPECT_EQ(node(x, at::ones({2, 8, 1, 1})), "ReluBackward0") << "ATen broadcasts";
  tensors.running_var = at::ones({16}).slice(0, 0, 16, 2);
  EXPECT_EQ(node(x, {}), "ReluBackward0");
  tensors = tensors_of({images({2, 7, 4, 4}, at::kFloat), {}, true});
  EXPECT_THROW(node(x, {}), c10::Error) << "a weight for seven channels";
}

TEST(BatchNorm, TakesGradientsAndAddendsOfAnyLayout) {
  const SingleThread single_thread;
  const at::Tensor x = images({2, 8, 4, 4}, at::kDouble);
  const at::Tensor addend = at::randn({2, 8, 4, 4}, at::kDouble);  // rows of pixels
  const auto gradients = [&](bool own) {
    const ReferenceKernelsGuard guard(!own);
    const at::Tensor in = leaf(x);
    const at::Tensor added = leaf(addend);
    const BatchNormTensors tensors = tensors_of({x, {}, true});
    const at::Tensor y = batch_norm(in.mul(1), tensors, {}, {added.mul(1), true});
    y.backward(at::arange(4, x.options()).view({1, 1, 1, 4}).expand({2, 8, 4, 4}));
    return std::vector<at::Tensor>{in.grad(), added.grad(), tensors.weight.grad()};
  };
  const std::vector<at::Tensor> ours = gradients(true);
  const std::vector<at::Tensor> atens = gradients(false);
  for (std::size_t i = 0; i < ours.size(); ++i) expect_close(ours[i], atens[i]);
}

TEST(BatchNorm, WithoutGradientsMovesTheStatisticsAllTheSame) {
  const SingleThread single_thread;
  const Case one{images({2, 8, 4, 4}, at::kDouble), {}, true};
  const at::NoGradGuard no_grad;
  const BatchNormTensors tensors = tensors_of(one);
  const at::Tensor y = batch_norm(one.x, tensors, {}, {{}, true});
  EXPECT_FALSE(y.requires_grad());
  EXPECT_FALSE(tensors.running_mean.equal(tensors_of(one).running_mean));
}

TEST(ResidualBlock, RefusesAPathWithoutANormalisationAtItsEnd) {
  LayerList path;
  path.push_back(std::make_unique<ReluLayer>("relu"));
  EXPECT_THROW(ResidualBlock("layer1.0", std::move(path), {}), std::invalid_argument);
  EXPECT_THROW(ResidualBlock("layer1.0", {}, {}), std::invalid_argument);
}

TEST(BatchNorm, TakesTheReluBehindItAlong) {
  const SingleThread single_thread;
  LayerList layers;
  layers.push_back(std::make_unique<BatchNormLayer>("bn", 6));
  layers.back()->materialise(0, at::kCPU, at::kFloat, at::MemoryFormat::Contiguous);
  layers.push_back(std::make_unique<ReluLayer>("relu"));
  const at::Tensor x = images({2, 6, 5, 5}, at::kFloat);
  const at::Tensor together = forward(layers, x);
  EXPECT_NE(together.grad_fn()->name().find("BatchNormFunction"), std::string::npos);
  const at::Tensor apart = layers[1]->forward(layers[0]->forward(x));
  EXPECT_EQ(apart.grad_fn()->name().find("BatchNormFunction"), std::string::npos);
  EXPECT_TRUE(together.equal(apart));
  EXPECT_EQ(layers[0]->buffers()[2].tensor.item<std::int64_t>(), 2) << "batches counted";
}

}  // namespace
}  // namespace stratagem::models::batch_norm_test
