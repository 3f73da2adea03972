#include "models/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "tests/models/single_thread.h"

namespace stratagem::models {
namespace {

struct Result {
  at::Tensor output;
  at::Tensor input_gradient;
  at::Tensor weight_gradient;
};

Result run(bool fold, const at::Tensor& input, const at::Tensor& weight, std::int64_t stride,
           std::int64_t padding) {
  const PointwiseFoldGuard guard(fold);
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

TEST(Convolution, OtherCasesArePlain) {
  using enum ConvolutionPath;
  const SingleThread single_thread;
  const at::Tensor w = at::randn({8, 8, 1, 1});
  const at::Tensor x = at::randn({4, 8, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast);
  ASSERT_EQ(convolution_path(x, w, 1, 0), product);
  EXPECT_EQ(convolution_path(x, at::randn({8, 8, 3, 3}), 1, 1), plain);
  EXPECT_EQ(convolution_path(x, w, 1, 1), plain);
  EXPECT_EQ(convolution_path(x.contiguous(), w, 1, 0), plain);
  EXPECT_EQ(convolution_path(x.to(at::kBFloat16), w.to(at::kBFloat16), 1, 0), plain);
  {
    const PointwiseFoldGuard off(false);
    EXPECT_EQ(convolution_path(x, w, 1, 0), plain);
  }
  at::set_num_threads(2);
  EXPECT_EQ(convolution_path(x, w, 1, 0), plain);
}

TEST(Convolution, GuardEndsWithItsScopeAndIsTheThreadsOwn) {
  EXPECT_TRUE(convolution_policy().fold_pointwise);
  {
    const PointwiseFoldGuard off(false);
    EXPECT_FALSE(convolution_policy().fold_pointwise);
    std::thread([] { EXPECT_TRUE(convolution_policy().fold_pointwise); }).join();
    {
      const PointwiseFoldGuard on(true);
      EXPECT_TRUE(convolution_policy().fold_pointwise);
    }
    EXPECT_FALSE(convolution_policy().fold_pointwise);
  }
  EXPECT_TRUE(convolution_policy().fold_pointwise);
}

}  // namespace
}  // namespace stratagem::models
