#include "models/cpu_kernels/convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/packed_weights.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/optimizer.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::convolution_test {
namespace {

struct Result {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
};

Result run(bool own, const at::Tensor& input, const at::Tensor& weight, std::int64_t stride,
           std::int64_t padding) {
  const ReferenceKernelsGuard guard(!own);
  const at::Tensor x = input.detach().clone().requires_grad_(true);
  const at::Tensor w = weight.detach().clone().requires_grad_(true);
  const at::Tensor y = convolution(x, w, stride, padding);
  y.backward(at::cos(y.detach()));
  return {y.detach(), x.grad(), w.grad()};
}

void expect_same(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const double error = (actual - expected).abs().max().item<double>();
  EXPECT_LE(error, tolerance * expected.abs().max().item<double>());
}

// Small images take the product, large ones the fold until the batch is large.
TEST(Convolution, EveryPathEqualsPlain) {
  const SingleThread single_thread;
  std::map<ConvolutionPath, int> taken;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-5;
    for (std::int64_t batch = 1; batch <= 17; ++batch) {
      for (const std::int64_t height : {5, 33}) {
        for (const std::int64_t stride : {1, 2}) {
          const at::Tensor x =
              at::randn({batch, 12, height, 9}, dtype).contiguous(at::MemoryFormat::ChannelsLast);
          const at::Tensor w = at::randn({20, 12, 1, 1}, dtype);
          const Result plain = run(false, x, w, stride, 0);
          const Result chosen = run(true, x, w, stride, 0);
          ++taken[convolution_path(x, w, stride, 0)];
          SCOPED_TRACE(testing::Message() << dtype << " batch " << batch << " height " << height
                                          << " stride " << stride);
          expect_same(chosen.output, plain.output, tolerance);
          expect_same(chosen.input_gradient, plain.input_gradient, tolerance);
          expect_same(chosen.weight_gradient, plain.weight_gradient, tolerance);
        }
      }
    }
  }
  EXPECT_GT(taken[ConvolutionPath::plain], 10);
  EXPECT_GT(taken[ConvolutionPath::folded], 10);
  EXPECT_GT(taken[ConvolutionPath::product], 10);
}

// Large weights: the gradient of a 3x3 is ATen's below a million of them and a product from there
// on. The last two are of whole vectors of channels: one block of tiles of an image, and several.
class LargeWeights : public testing::TestWithParam<int> {};

TEST_P(LargeWeights, EqualPlain) {
  using enum ConvolutionPath;
  const SingleThread restores_their_number;
  at::set_num_threads(GetParam());
  struct Shape {
    std::int64_t in, out, kernel, stride, padding;
    ConvolutionPath path = packed;
  };
  for (const Shape& shape :
       {Shape{264, 264, 3, 1, 1}, Shape{344, 344, 3, 2, 1}, Shape{344, 344, 3, 1, 0},
        Shape{512, 1024, 1, 1, 0}, Shape{1024, 512, 1, 2, 0}, Shape{160, 168, 5, 2, 1},
        Shape{256, 288, 3, 1, 1, winograd}, Shape{64, 32, 3, 1, 1, winograd}}) {
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      for (const auto& [height, width] : {std::pair{6, 6}, std::pair{7, 8}}) {
        const at::Tensor x = at::randn({3, shape.in, height, width}, dtype)
                                 .contiguous(at::MemoryFormat::ChannelsLast);
        const at::Tensor w = at::randn({shape.out, shape.in, shape.kernel, shape.kernel}, dtype)
                                 .contiguous(at::MemoryFormat::ChannelsLast);
        SCOPED_TRACE(testing::Message() << dtype << " in " << shape.in << " kernel " << shape.kernel
                                        << " stride " << shape.stride << " height " << height);
        ASSERT_EQ(convolution_path(x, w, shape.stride, shape.padding), shape.path);
        const Result plain = run(false, x, w, shape.stride, shape.padding);
        const Result chosen = run(true, x, w, shape.stride, shape.padding);
        // Of sums of 3096 terms; the cosine of the output makes more of its errors.
        const double tolerance =
            (dtype == at::kDouble ? 1e-13 : 5e-5) * (shape.path == winograd ? 2 : 1);
        expect_same(chosen.output, plain.output, tolerance);
        expect_same(chosen.input_gradient, plain.input_gradient, tolerance);
        expect_same(chosen.weight_gradient, plain.weight_gradient, tolerance);
        EXPECT_EQ(chosen.output.strides(), plain.output.strides());
        EXPECT_EQ(chosen.input_gradient.strides(), plain.input_gradient.strides());
        const std::int64_t row = shape.kernel * shape.in;
        EXPECT_EQ(chosen.weight_gradient.strides(),
                  at::IntArrayRef({row * shape.kernel, 1, row, shape.in}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, LargeWeights, testing::Values(1, 3));

// Images of one column are computed on oneDNN's weights, others on our transformed ones.
TEST(Convolution, PackedWeightsFollowTheWeight) {
  const SingleThread single_thread;
  const auto packed = c10::make_intrusive<PackedWeights>();
  const auto format = at::MemoryFormat::ChannelsLast;
  at::Tensor w = at::randn({256, 256, 3, 3}).contiguous(format).requires_grad_(true);
  const at::Tensor first = packed->for_forward(w, {2, 256, 4, 4}, {1, 1});
  EXPECT_TRUE(packed->for_forward(w, {2, 256, 4, 4}, {1, 1}).is_same(first)) << "packed once";
  for (int step = 0; step < 3; ++step) {
    for (const std::int64_t width : {1, 4, 1, 4}) {
      SCOPED_TRACE(testing::Message() << "step " << step << ", width " << width);
      const at::Tensor x = at::randn({2, 256, 4, width}).contiguous(format).requires_grad_(true);
      const auto path = width == 1 ? ConvolutionPath::packed : ConvolutionPath::winograd;
      ASSERT_EQ(convolution_path(x, w, 1, 1, packed), path);
      const at::Tensor y = convolution(x, w, 1, 1, packed);
      const at::Tensor expected = at::conv2d(x.detach(), w.detach(), {}, 1, 1);
      expect_same(y.detach(), expected, 1e-5);
      y.sum().backward();
      const at::Tensor ones = at::ones_like(expected);
      const auto of_input = std::get<0>(
          at::convolution_backward(ones, x.detach(), w.detach(), std::nullopt, {1, 1}, {1, 1},
                                   {1, 1}, false, {0, 0}, 1, {true, false, false}));
      expect_same(x.grad(), of_input, 1e-5);
    }
    const at::NoGradGuard no_grad;  // an optimizer's update
    w.mul_(-1.5);
  }
  at::Tensor other = at::randn({256, 256, 3, 3}).contiguous(format);
  EXPECT_FALSE(packed->for_forward(other, {2, 256, 4, 4}, {1, 1}).is_same(first));
}

TEST(Convolution, WeightsLeaveTheirGradientToWhoeverCollects) {
  const SingleThread single_thread;
  const auto format = at::MemoryFormat::ChannelsLast;
  for (const std::int64_t channels : {344, 32}) {
    const at::Tensor x = at::randn({2, channels, 4, 4}, at::kDouble).contiguous(format);
    const at::Tensor w = at::randn({channels, channels, 3, 3}, at::kDouble).contiguous(format);
    const at::Tensor leaf = w.clone().requires_grad_(true);
    const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
    at::Tensor y;
    {
      const DeferWeightGradientsGuard deferring(deferred);
      y = convolution(x.clone().requires_grad_(true), leaf, 1, 1);
    }
    y.backward(at::cos(y.detach()));
    EXPECT_FALSE(leaf.grad().defined());
    deferred->run();
    expect_same(leaf.grad(), run(false, x, w, 1, 1).weight_gradient, 1e-13);
  }
}

// A fused optimizer writes without ATen's in-place operators' names; its updates must show.
// In float64, too: that is what an oracle checks in.
TEST(Convolution, PackedWeightsFollowTheFusedOptimizer) {
  using Kind = OptimizerOptions::Kind;
  const SingleThread single_thread;
  const auto format = at::MemoryFormat::ChannelsLast;
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
      for (const std::int64_t channels : {256, 264}) {  // transformed; packed by oneDNN
        const at::Tensor w =
            at::randn({channels, channels, 3, 3}, dtype).contiguous(format).requires_grad_(true);
        OptimizerOptions options;
        options.kind = kind;
        options.learning_rate = 0.5;
        Optimizer optimizer({{"weight", w}}, options);
        const auto packed = c10::make_intrusive<PackedWeights>();
        const at::Tensor x = at::randn({2, channels, 4, 4}, dtype).contiguous(format);
        convolution(x, w, 1, 1, packed).sum().backward();
        optimizer.step();
        expect_same(convolution(x, w, 1, 1, packed).detach(), at::conv2d(x, w.detach(), {}, 1, 1),
                    1e-5);
      }
    }
  }
}

TEST(Convolution, OutputAndGradientsKeepTheirFormat) {
  const SingleThread single_thread;
  for (const std::int64_t height : {5, 33}) {
    const at::Tensor x = at::randn({4, 12, height, 9}).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor w = at::randn({20, 12, 1, 1});
    ASSERT_NE(convolution_path(x, w, 1, 0), ConvolutionPath::plain);
    const Result chosen = run(true, x, w, 1, 0);
    EXPECT_TRUE(chosen.output.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(chosen.input_gradient.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(chosen.weight_gradient.is_contiguous());
  }
}

TEST(Convolution, ChoosesThePathByShape) {
  using enum ConvolutionPath;
  const SingleThread single_thread;
  const at::Tensor w = at::randn({8, 8, 1, 1});
  const auto path = [&w](std::int64_t batch, std::int64_t height, std::int64_t width,
                         std::int64_t stride) {
    const at::Tensor x =
        at::randn({batch, 8, height, width}).contiguous(at::MemoryFormat::ChannelsLast);
    return convolution_path(x, w, stride, 0);
  };
  EXPECT_EQ(path(4, 8, 8, 1), product);
  EXPECT_EQ(path(16, 4, 4, 1), product);
  EXPECT_EQ(path(4, 16, 16, 2), product);
  EXPECT_EQ(path(5, 8, 8, 1), folded);
  EXPECT_EQ(path(15, 8, 8, 1), folded);
  EXPECT_EQ(path(16, 8, 8, 1), plain) << "oneDNN without help";
  EXPECT_EQ(path(5, 16, 16, 2), plain) << "oneDNN without help";
  EXPECT_EQ(path(1, 15, 64, 1), plain) << "too few rows to fold";
}

TEST(Convolution, TakesFewerMultiplicationsWhereItCan) {
  using enum ConvolutionPath;
  const SingleThread single_thread;
  const auto path = [](const std::vector<std::int64_t>& image,
                       const std::vector<std::int64_t>& shape, std::int64_t stride,
                       std::int64_t padding, at::ScalarType type) {
    const at::Tensor x = at::randn(image, type).contiguous(at::MemoryFormat::ChannelsLast);
    return convolution_path(x, at::randn(shape, type), stride, padding);
  };
  EXPECT_EQ(path({2, 32, 4, 4}, {64, 32, 3, 3}, 1, 1, at::kFloat), winograd);
  EXPECT_EQ(path({2, 16, 3, 3}, {16, 16, 3, 3}, 1, 1, at::kDouble), winograd);
  EXPECT_EQ(path({8, 32, 4, 1}, {64, 32, 3, 3}, 1, 1, at::kFloat), plain) << "most is padding";
  EXPECT_EQ(path({2, 16, 4, 4}, {64, 16, 3, 3}, 1, 1, at::kFloat), plain) << "half a panel";
  EXPECT_EQ(path({2, 32, 4, 4}, {48, 32, 3, 3}, 1, 1, at::kFloat), plain) << "half a panel";
  EXPECT_EQ(path({2, 64, 4, 4}, {64, 32, 3, 3}, 1, 1, at::kFloat), plain) << "ATen's error";
  EXPECT_EQ(path({0, 32, 4, 4}, {64, 32, 3, 3}, 1, 1, at::kFloat), plain) << "no sample";
  EXPECT_EQ(path({2, 32, 8, 8}, {64, 32, 3, 3}, 2, 1, at::kFloat), plain);
  EXPECT_EQ(path({2, 32, 8, 8}, {64, 32, 3, 3}, 1, 0, at::kFloat), plain);
  EXPECT_EQ(path({2, 32, 8, 8}, {64, 32, 5, 5}, 1, 1, at::kFloat), plain);
  EXPECT_EQ(path({2, 32, 8, 8}, {64, 32, 3, 3}, 1, 1, at::kBFloat16), plain);
}

TEST(Convolution, OtherCasesArePlain) {
  using enum ConvolutionPath;
  const SingleThread single_thread;
  const at::Tensor w = at::randn({8, 8, 1, 1});
  const at::Tensor x = at::randn({4, 8, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast);
  ASSERT_EQ(convolution_path(x, w, 1, 0), product);
  EXPECT_EQ(convolution_path(x, at::randn({8, 8, 3, 3}), 1, 1), plain);
  EXPECT_EQ(convolution_path(x, at::randn({8192, 8, 3, 3}), 1, 1), packed);
  // 73728 weights, of a model that is an eighth as wide.
  const auto narrow = c10::make_intrusive<PackedWeights>(0.125);
  EXPECT_EQ(convolution_path(x, at::randn({1024, 8, 3, 3}), 1, 1, narrow), packed);
  EXPECT_EQ(convolution_path(x, at::randn({1024, 8, 3, 3}), 1, 1), plain);
  EXPECT_EQ(convolution_path(x, w, 1, 1), plain);
  EXPECT_EQ(convolution_path(x.contiguous(), w, 1, 0), plain);
  EXPECT_EQ(convolution_path(x.to(at::kBFloat16), w.to(at::kBFloat16), 1, 0), plain);
  {
    const ReferenceKernelsGuard off;
    EXPECT_EQ(convolution_path(x, w, 1, 0), plain);
  }
  at::set_num_threads(2);
  EXPECT_EQ(convolution_path(x, w, 1, 0), plain);
  EXPECT_EQ(convolution_path(x, at::randn({8192, 8, 3, 3}), 1, 1), packed);
}

}  // namespace
}  // namespace stratagem::models::convolution_test
