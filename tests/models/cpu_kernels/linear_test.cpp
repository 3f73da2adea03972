// Linear layers in float32, on either side of the size from which oneDNN computes their products,
// against the same in float64.
#include "models/cpu_kernels/linear.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/kernels/wide_vectors.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models::linear_test {
namespace {

struct Size {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;

  std::int64_t products() const { return rows * in * out; }
};

constexpr std::array sizes = {Size{1, 1, 1},      Size{3, 5, 7},       Size{48, 10, 5},
                              Size{64, 128, 127},  // 2^20 - 8192 products
                              Size{64, 128, 128},  // 2^20
                              Size{127, 65, 129}, Size{33, 257, 1001}, Size{1, 1024, 1031},
                              Size{600, 544, 101}};  // more than a block either way
constexpr std::int64_t by_onednn = 1 << 20;

struct Linear {
  at::Tensor x;
  at::Tensor weight;
  at::Tensor bias;  // may be undefined
  at::Tensor gradient;
};

Linear random_linear(const Size& size, bool with_bias) {
  at::manual_seed(1);
  return {at::randn({size.rows, size.in}), at::randn({size.out, size.in}),
          with_bias ? at::randn({size.out}) : at::Tensor(), at::randn({size.rows, size.out})};
}

/// The output and the gradients of input, weight and bias. Two backward passes: the second one
/// adds.
std::vector<at::Tensor> passes_of(const Linear& given, at::ScalarType dtype, bool split = false) {
  const auto leaf = [dtype](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(dtype, false, true).requires_grad_(true) : tensor;
  };
  const at::Tensor weight = leaf(given.weight);
  const at::Tensor bias = leaf(given.bias);
  std::vector<at::Tensor> results;
  for (int pass = 0; pass < 2; ++pass) {
    const at::Tensor x = leaf(given.x);
    const auto deferred =
        split ? c10::make_intrusive<DeferredWeightGradients>() : DeferredWeightGradientsPointer();
    at::Tensor y;
    {
      const DeferWeightGradientsGuard deferring(deferred);
      y = linear(x, weight, bias);
    }
    y.backward(given.gradient.to(dtype));
    if (deferred) deferred->run();
    results.push_back(y.detach());
    results.push_back(x.grad());
  }
  results.push_back(weight.grad());
  if (bias.defined()) results.push_back(bias.grad());
  return results;
}

// Each element is a sum of so many products; see bench/oracle/rounding.h.
void expect_rounded(const at::Tensor& found, const at::Tensor& exact, std::int64_t terms) {
  ASSERT_EQ(found.sizes(), exact.sizes());
  const double bound = 8 * 0x1p-24 * std::sqrt(static_cast<double>(terms));
  EXPECT_LE((found.to(at::kDouble) - exact).norm().item<double>(),
            bound * exact.norm().item<double>());
}

// A callback of ATen's captures nothing.
std::atomic<int> onednn_products{0};

struct CountOneDnnProducts {
  CountOneDnnProducts() {
    onednn_products = 0;
    handle = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          if (std::string_view(function.name()) == "mkldnn::_linear_pointwise") ++onednn_products;
          return nullptr;
        }));
  }
  ~CountOneDnnProducts() { at::removeCallback(handle); }
  CountOneDnnProducts(const CountOneDnnProducts&) = delete;
  CountOneDnnProducts& operator=(const CountOneDnnProducts&) = delete;

  at::CallbackHandle handle = 0;
};

TEST(LinearInFloat32, IsThatInFloat64Rounded) {
  for (const Size& size : sizes) {
    for (const bool with_bias : {true, false}) {
      for (const bool split : {false, true}) {
        SCOPED_TRACE(testing::Message() << size.rows << " x " << size.in << " -> " << size.out
                                        << (with_bias ? ", bias" : "") << (split ? ", split" : ""));
        const Linear given = random_linear(size, with_bias);
        const auto exact = passes_of(given, at::kDouble);
        const CountOneDnnProducts count;
        const auto found = passes_of(given, at::kFloat, split);
        const bool large = size.products() >= by_onednn;
        const bool by_onednn_too =
            kernels::wide_vectors() == kernels::WideVectors::full && size.rows >= 64;
        const int of_weight = by_onednn_too ? 2 : 0;  // stored, and added
        EXPECT_EQ(onednn_products, large ? 4 + of_weight : 0) << "output and input gradient twice";
        ASSERT_EQ(found.size(), exact.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          SCOPED_TRACE(testing::Message() << "result " << i);
          const std::array terms = {size.in,  size.out,      size.in,
                                    size.out, 2 * size.rows, 2 * size.rows};
          expect_rounded(found[i], exact[i], terms.at(i));
        }
      }
    }
  }
}

TEST(LinearInFloat32, TakesATensOfTheReferenceKernels) {
  const ReferenceKernelsGuard reference;
  const CountOneDnnProducts count;
  passes_of(random_linear({128, 128, 128}, true), at::kFloat);
  EXPECT_EQ(onednn_products, 0);
}

}  // namespace
}  // namespace stratagem::models::linear_test
