#include "models/batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "models/basic_layers.h"
#include "models/kernels/batch_norm_variants.h"
#include "models/model.h"
#include "models/weight_gradients.h"
#include "tests/models/single_thread.h"

namespace stratagem::models {
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
};

at::Tensor leaf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().clone().requires_grad_(true) : tensor;
}

BatchNormTensors tensors_of(const Case& one) {
  const at::Tensor ramp = at::arange(one.channels(), one.x.options()) / one.channels();
  return {leaf(0.5 + ramp), leaf(0.3 - ramp), (0.1 * ramp).clone(), (1 + ramp).clone()};
}

// The gradient that comes back is the output's cosine: it depends on every value.
Result run(const Case& one, bool own, const WeightGradientsPointer& collector = {}) {
  const OwnBatchNormGuard guard(own);
  const CollectWeightGradients collecting(collector);
  const at::Tensor x = leaf(one.x);
  const at::Tensor addend = leaf(one.addend);
  const BatchNormTensors tensors = tensors_of(one);
  // Not the leaves themselves: ATen's way adds and rectifies in place.
  const at::Tensor y =
      batch_norm(x.mul(1), tensors, {}, {addend.defined() ? addend.mul(1) : addend, one.relu});
  y.backward(at::cos(y.detach()));
  Result result{y.detach(),
                {x.grad(), tensors.weight.grad(), tensors.bias.grad()},
                {tensors.running_mean, tensors.running_var}};
  if (addend.defined()) result.gradients.push_back(addend.grad());
  return result;
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const double tolerance = actual.scalar_type() == at::kDouble ? 1e-12 : 2e-5;
  const double largest = expected.abs().max().item<double>();
  EXPECT_LE((actual - expected).abs().max().item<double>(), tolerance * (1 + largest));
}

void expect_close(const Result& actual, const Result& expected) {
  expect_close(actual.output, expected.output);
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (std::size_t i = 0; i < actual.gradients.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "gradient " << i);
    expect_close(actual.gradients[i], expected.gradients[i]);
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
  Result whole = run(one, true);
  const auto collector = c10::make_intrusive<WeightGradients>();
  const Result split = run(one, true, collector);
  EXPECT_FALSE(split.gradients[1].defined()) << "no parameter has a gradient before W";
  EXPECT_EQ(collector->size(), 2U);
  EXPECT_TRUE(split.gradients[0].equal(whole.gradients[0]));
  EXPECT_TRUE(split.output.equal(whole.output));
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
  EXPECT_EQ(node_of(x).find("BatchNormFunction"), std::string::npos) << "OpenMP is ATen's";
  at::set_num_threads(1);
  const OwnBatchNormGuard off(false);
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
  const at::Tensor x = images({8, 4, 16, 16}, at::kDouble) * 1e-3 + 50;
  const Case precise{x.contiguous(at::MemoryFormat::ChannelsLast), {}, false};
  const Case one{precise.x.to(at::kFloat), {}, false};
  const at::Tensor expected = run({one.x.to(at::kDouble), {}, false}, false).running[1];
  const at::Tensor found = run(one, true).running[1].to(at::kDouble);
  EXPECT_LE(((found - expected) / expected).abs().max().item<double>(), 1e-6);
}

TEST(BatchNorm, WhatIsNotANumberStaysVisible) {
  const SingleThread single_thread;
  Case one{images({2, 4, 4, 4}, at::kFloat), {}, true};
  one.x[0][1][2][2] = std::numeric_limits<float>::quiet_NaN();
  const Result result = run(one, true);
  EXPECT_TRUE(result.output.select(1, 1).isnan().all().item<bool>());
  EXPECT_FALSE(result.output.select(1, 0).isnan().any().item<bool>());
  EXPECT_TRUE(result.gradients[1][1].isnan().item<bool>());
}

TEST(BatchNorm, TakesTheReluBehindItAlong) {
  const SingleThread single_thread;
  LayerList layers;
  layers.push_back(std::make_unique<BatchNormLayer>("bn", 6));
  layers.push_back(std::make_unique<ReluLayer>("relu"));
  const at::Tensor x = images({2, 6, 5, 5}, at::kFloat);
  const at::Tensor together = forward(layers, x);
  EXPECT_NE(together.grad_fn()->name().find("BatchNormFunction"), std::string::npos);
  const at::Tensor apart = layers[1]->forward(layers[0]->forward(x));
  EXPECT_EQ(apart.grad_fn()->name().find("BatchNormFunction"), std::string::npos);
  EXPECT_TRUE(together.equal(apart));
  EXPECT_EQ(layers[0]->buffers()[2].tensor.item<std::int64_t>(), 2) << "batches counted";
}

template <typename T>
void expect_alike(const kernels::BatchNormKernels<T>& one,
                  const kernels::BatchNormKernels<T>& other) {
  const auto type = c10::CppTypeToScalarType<T>::value;
  const std::int64_t rows = 300;
  const std::int64_t channels = 37;
  const at::Tensor x = at::randn({rows, channels}, type);
  const at::Tensor scale = at::rand({channels}, type);
  const at::Tensor shift = at::randn({channels}, type);
  const auto moments = [&](const kernels::BatchNormKernels<T>& all) {
    at::Tensor result = at::empty({2, channels}, at::kDouble);
    std::vector<T> scratch(2 * channels);
    auto* const values = result.mutable_data_ptr<double>();
    all.moments(x.const_data_ptr<T>(), rows, channels, scratch.data(), {values, values + channels});
    return result;
  };
  EXPECT_TRUE(at::allclose(moments(one), moments(other), 1e-5, 1e-6));
  const auto rectified = [&](const kernels::BatchNormKernels<T>& all) {
    at::Tensor y = at::empty_like(x);
    all.normalise({x.const_data_ptr<T>(), nullptr, scale.const_data_ptr<T>(),
                   shift.const_data_ptr<T>(), y.mutable_data_ptr<T>(), true},
                  rows, channels);
    return y;
  };
  EXPECT_TRUE(at::allclose(rectified(one), rectified(other), 1e-5, 1e-6));
}

TEST(BatchNorm, EveryInstructionSetComputesTheSame) {
  const kernels::BatchNormVariant& chosen = kernels::batch_norm_choice();
  expect_alike(chosen.of_float, kernels::batch_norm_baseline().of_float);
  expect_alike(chosen.of_double, kernels::batch_norm_baseline().of_double);
}

}  // namespace
}  // namespace stratagem::models
