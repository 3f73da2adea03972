// Gradients of several micro-batches: added where they lie, they are the sum that autograd makes.
#include "models/cpu_kernels/gradient_accumulation_fusion.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/packed_convolution.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/cpu_kernels/winograd_convolution.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::gradient_accumulation_fusion_test {
namespace {

using Tensors = torch::autograd::variable_list;

at::Tensor leaf(at::IntArrayRef shape, at::ScalarType type = at::kDouble) {
  return at::randn(shape, type).requires_grad_(true);
}

void expect_close(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_TRUE(found.defined());
  const double tolerance = found.scalar_type() == at::kDouble ? 1e-12 : 1e-4;
  const double scale = expected.abs().max().item<double>();
  EXPECT_LE((found - expected).abs().max().item<double>(), tolerance * scale);
}

// The gradient of `weight` after three micro-batches, each of which adds to what lies at one place
// from the second on: the sum of three that were asked for by themselves.
template <typename Output>
void expect_sum(const at::Tensor& weight, at::IntArrayRef input, const Output& output) {
  at::Tensor expected;
  const void* place = nullptr;
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    const at::Tensor x = at::randn(input, weight.options().requires_grad(false));
    const auto loss = [&] { return output(x).square().sum(); };
    const at::Tensor own = torch::autograd::grad(Tensors{loss()}, Tensors{weight})[0];
    expected = expected.defined() ? expected + own : own;
    loss().backward();
    if (micro_batch > 0) {
      EXPECT_EQ(weight.grad().const_data_ptr(), place);
    }
    place = weight.grad().const_data_ptr();
    expect_close(weight.grad(), expected);
  }
}

class SumOfMicroBatches : public testing::TestWithParam<at::ScalarType> {};

TEST_P(SumOfMicroBatches, OfALinearLayer) {
  const SingleThread single_thread;
  const at::Tensor weight = leaf({5, 7}, GetParam());
  const at::Tensor bias = leaf({5}, GetParam());
  expect_sum(weight, {2, 3, 7},
             [&](const at::Tensor& x) { return models::linear(x, weight, bias); });
  const at::Tensor alone = leaf({5, 7}, GetParam());
  expect_sum(alone, {4, 7}, [&](const at::Tensor& x) { return models::linear(x, alone, {}); });
}

TEST_P(SumOfMicroBatches, OfAPackedConvolution) {
  const SingleThread single_thread;
  for (const std::int64_t kernel : {1, 3}) {
    const at::Tensor weight = at::randn({6, 4, kernel, kernel}, GetParam())
                                  .contiguous(at::MemoryFormat::ChannelsLast)
                                  .requires_grad_(true);
    // A narrow model's: the full one has enough weights for the product.
    const auto packed = c10::make_intrusive<PackedWeights>(1.0 / 256);
    expect_sum(weight, {2, 4, 5, 5}, [&](const at::Tensor& x) {
      return packed_convolution(x.contiguous(at::MemoryFormat::ChannelsLast), weight,
                                {1, kernel / 2}, packed);
    });
  }
}

TEST_P(SumOfMicroBatches, OfAWinogradConvolution) {
  const SingleThread single_thread;
  const at::Tensor weight =
      leaf({32, 32, 3, 3}, GetParam()).detach().contiguous(at::MemoryFormat::ChannelsLast);
  weight.requires_grad_(true);
  const auto packed = c10::make_intrusive<PackedWeights>();
  expect_sum(weight, {1, 32, 5, 4}, [&](const at::Tensor& x) {
    return winograd_convolution(x.contiguous(at::MemoryFormat::ChannelsLast), weight, packed);
  });
}

TEST_P(SumOfMicroBatches, OfAnEmbedding) {
  const at::Tensor weight = leaf({6, 3}, GetParam());
  expect_sum(weight, {2, 4}, [&](const at::Tensor& x) {
    return models::embedding(weight, (x.abs() * 100).to(at::kLong).remainder(6));
  });
}

INSTANTIATE_TEST_SUITE_P(Types, SumOfMicroBatches, testing::Values(at::kFloat, at::kDouble),
                         [](const auto& instance) { return c10::toString(instance.param); });

class AccumulateIntoGradient : public testing::Test {
 protected:
  AccumulateIntoGradient() { weight_.mutable_grad() = at::ones({2, 3}, at::kDouble); }

  bool adds() const {
    const at::NoGradGuard no_gradient;
    return accumulate_into_gradient(weight_, left_, right_);
  }

  void expect_refused() const {
    const at::Tensor before = weight_.grad().clone();
    EXPECT_FALSE(adds());
    EXPECT_TRUE(at::equal(weight_.grad(), before));
  }

  at::Tensor weight_ = at::zeros({2, 3}, at::kDouble).requires_grad_(true);
  at::Tensor left_ = at::full({4, 2}, 2.0, at::kDouble);
  at::Tensor right_ = at::full({4, 3}, 3.0, at::kDouble);
};

TEST_F(AccumulateIntoGradient, AddsTheProduct) {
  EXPECT_TRUE(adds());
  EXPECT_TRUE(at::equal(weight_.grad(), at::full({2, 3}, 25.0, at::kDouble)));
}

TEST_F(AccumulateIntoGradient, LeavesTheFirstToAutograd) {
  weight_.mutable_grad() = at::Tensor();
  EXPECT_FALSE(adds());
  EXPECT_FALSE(weight_.grad().defined());
}

TEST_F(AccumulateIntoGradient, LeavesAWatchedOneToAutograd) {
  const auto watched = weight_.register_hook([](const at::Tensor& gradient) { return gradient; });
  expect_refused();
  weight_.remove_hook(watched);
}

TEST_F(AccumulateIntoGradient, LeavesAViewToAutograd) {
  const at::Tensor view = weight_.t();
  const at::NoGradGuard no_gradient;
  EXPECT_FALSE(accumulate_into_gradient(view, right_, left_));
}

TEST_F(AccumulateIntoGradient, LeavesADifferentiableGradientToAutograd) {
  EXPECT_FALSE(accumulate_into_gradient(weight_, left_, right_));
}

TEST_F(AccumulateIntoGradient, LeavesASumThatLiesOtherwiseToAutograd) {
  weight_.mutable_grad() = at::ones({3, 2}, at::kDouble).t();
  expect_refused();
}

TEST_F(AccumulateIntoGradient, LeavesAllToAutogradUnderTheGuard) {
  const ReferenceKernelsGuard off;
  expect_refused();
}

TEST_F(AccumulateIntoGradient, LeavesAnotherFormatToAutograd) {
  left_ = left_.to(at::kFloat);
  right_ = right_.to(at::kFloat);
  expect_refused();
}

// What changes a gradient before it is summed still gets that of every micro-batch.
TEST(GradientAccumulationFusion, AHookGetsTheGradientOfEveryMicroBatch) {
  const at::Tensor weight = leaf({2, 3});
  weight.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    models::linear(at::ones({4, 3}, at::kDouble), weight, {}).sum().backward();
  }
  EXPECT_TRUE(at::equal(weight.grad(), at::full({2, 3}, 24.0, at::kDouble)));
}

}  // namespace
}  // namespace stratagem::models::gradient_accumulation_fusion_test
