#include "models/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <thread>
#include <vector>

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

TEST(Convolution, FoldEqualsPlain) {
  const SingleThread single_thread;
  int folded_calls = 0;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-5;
    for (std::int64_t batch = 1; batch <= 17; ++batch) {
      for (const std::int64_t stride : {1, 2}) {
        const at::Tensor x =
            at::randn({batch, 12, 16, 9}, dtype).contiguous(at::MemoryFormat::ChannelsLast);
        const at::Tensor w = at::randn({20, 12, 1, 1}, dtype);
        const Result plain = run(false, x, w, stride, 0);
        const Result folded = run(true, x, w, stride, 0);
        folded_calls += takes_fold(x, w, stride, 0) ? 1 : 0;
        SCOPED_TRACE(testing::Message() << dtype << " batch " << batch << " stride " << stride);
        expect_same(folded.output, plain.output, tolerance);
        expect_same(folded.input_gradient, plain.input_gradient, tolerance);
        expect_same(folded.weight_gradient, plain.weight_gradient, tolerance);
      }
    }
  }
  EXPECT_EQ(folded_calls, 2 * 15);
}

TEST(Convolution, FoldKeepsChannelsLast) {
  const SingleThread single_thread;
  const at::Tensor x = at::randn({4, 12, 16, 9}).contiguous(at::MemoryFormat::ChannelsLast);
  const Result folded = run(true, x, at::randn({20, 12, 1, 1}), 1, 0);
  EXPECT_TRUE(folded.output.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(folded.input_gradient.is_contiguous(at::MemoryFormat::ChannelsLast));
}

// The fold shows in the graph: its last operation is the permutation back.
bool folds(const at::Tensor& x, const at::Tensor& w, std::int64_t stride, std::int64_t padding) {
  const at::Tensor y = convolution(x, w.detach().requires_grad_(true), stride, padding);
  return y.grad_fn()->name().find("Permute") != std::string::npos;
}

TEST(Convolution, FoldsOnlyWhereItPays) {
  const SingleThread single_thread;
  const auto image = [](std::int64_t batch, std::int64_t height, std::int64_t width) {
    return at::randn({batch, 8, height, width}).contiguous(at::MemoryFormat::ChannelsLast);
  };
  const at::Tensor pointwise = at::randn({8, 8, 1, 1});
  const at::Tensor x = image(4, 8, 8);
  EXPECT_TRUE(folds(x, pointwise, 1, 0));
  EXPECT_TRUE(folds(x.to(at::kDouble), pointwise.to(at::kDouble), 1, 0));
  EXPECT_TRUE(folds(image(1, 16, 8), pointwise, 1, 0));
  EXPECT_TRUE(folds(image(15, 4, 4), pointwise, 1, 0));

  EXPECT_FALSE(folds(image(16, 8, 8), pointwise, 1, 0)) << "large batch";
  EXPECT_FALSE(folds(image(7, 4, 4), pointwise, 1, 0)) << "few positions";
  EXPECT_FALSE(folds(image(1, 15, 64), pointwise, 1, 0)) << "few rows";
  EXPECT_FALSE(folds(x, pointwise, 2, 0)) << "stride";
  EXPECT_FALSE(folds(x, at::randn({8, 8, 3, 3}), 1, 1)) << "kernel";
  EXPECT_FALSE(folds(x.contiguous(), pointwise, 1, 0)) << "memory format";
  EXPECT_FALSE(folds(x.to(at::kBFloat16), pointwise.to(at::kBFloat16), 1, 0)) << "dtype";
  at::set_num_threads(2);
  EXPECT_FALSE(folds(x, pointwise, 1, 0)) << "threads";
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
