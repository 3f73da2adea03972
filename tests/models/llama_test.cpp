// Llama against PyTorch's, float64, as recorded by make_llama_reference.py; its size and its cost
// by formula; and its dimensions without memory.
#include "models/llama.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/cpu_kernels/row_functions.h"
#include "models/model.h"
#include "tests/models/language_model_reference.h"
#include "tests/models/parameter_count.h"
#include "tests/models/reference_values.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::llama_test {
namespace {

class LlamaReference : public testing::TestWithParam<bool> {};

TEST_P(LlamaReference, IsPyTorchs) {
  const SingleThread single_thread;
  const ReferenceKernelsGuard guard(!GetParam());
  expect_pytorchs("llama-tiny", "reference_llama.json", 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LlamaReference, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "own" : "atens"; });

/// Vocabulary x features twice, and a block of f features, g of h heads with keys and values, and m
/// features of the MLP: f (2 f + 2 f g / h + 3 m) and two normalisations.
std::int64_t parameters_of(std::int64_t f, std::int64_t blocks, const GroupedHeads& heads,
                           std::int64_t m, std::int64_t vocabulary) {
  const std::int64_t keys = f / heads.count() * heads.groups;
  return 2 * vocabulary * f + blocks * (f * (2 * f + 2 * keys + 3 * m) + 2 * f) + f;
}

TEST(Llama, ParametersAreThoseOfTheFormula) {
  const auto count = [](const char* name) {
    return parameter_count(find_model(name).make({}).layers);
  };
  EXPECT_EQ(count("llama-tiny"), parameters_of(64, 2, {2, 2}, 176, 256));
  EXPECT_EQ(count("llama-small"), parameters_of(512, 8, {4, 2}, 1408, 8192));
  EXPECT_EQ(count("llama3-8b"), 8'030'261'248);  // as published with its weights
}

TEST(Llama, FlopsAreSixAParameterOfTheProductsAndTwelveForAttention) {
  constexpr std::int64_t sequence = 128;
  const Model model = find_model("llama-small").make({});
  const PassFlops flops = models::flops(model.layers, {1, sequence}, false);
  const double products = 8 * 512.0 * (2 * 512 + 2 * 256 + 3 * 1408) + 8192 * 512.0;
  const double expected = sequence * (6 * products + 12 * 512.0 * 8 * sequence);
  EXPECT_NEAR(flops.total() / expected, 1, 1e-12);
}

TEST(Llama, NarrowHeadsStayEven) {
  for (const double width : {0.01, 0.125, 0.3, 0.7}) {
    const Model model = find_model("llama-small").make({.width = width});
    const Shape shape = output_shape(model.layers, {2, 16});
    EXPECT_EQ(shape.back(), 8192) << width;
    EXPECT_EQ(parameters(model.layers).front().tensor.size(1) % 16, 0) << width;
  }
}

TEST(RmsNorm, HasAtensDerivatives) {
  const at::Tensor x = uniform(1, {3, 5, 8}).requires_grad_();
  const at::Tensor weight = (uniform(2, {8}) + 1).requires_grad_();
  const at::Tensor gradient = uniform(3, {3, 5, 8});
  const auto derivatives = [&](const at::Tensor& y) {
    x.mutable_grad().reset();
    weight.mutable_grad().reset();
    y.backward(gradient);
    return std::pair{x.grad().clone(), weight.grad().clone()};
  };
  const at::Tensor own = rms_norm(x, weight);
  const at::Tensor atens = at::rms_norm(x, weight.sizes(), weight, 1e-5);
  EXPECT_TRUE(at::allclose(own, atens, 1e-14, 1e-14));
  const auto [own_x, own_weight] = derivatives(own);
  const auto [atens_x, atens_weight] = derivatives(atens);
  EXPECT_TRUE(at::allclose(own_x, atens_x, 1e-12, 1e-13));
  EXPECT_TRUE(at::allclose(own_weight, atens_weight, 1e-12, 1e-13));

  const auto deferred = c10::make_intrusive<DeferredWeightGradients>();
  at::Tensor later;
  {
    const DeferWeightGradientsGuard guard(deferred);
    later = rms_norm(x, weight);
  }
  x.mutable_grad().reset();
  weight.mutable_grad().reset();
  later.backward(gradient);
  EXPECT_TRUE(at::equal(x.grad(), own_x));
  EXPECT_FALSE(weight.grad().defined());
  deferred->run();
  EXPECT_TRUE(at::equal(weight.grad(), own_weight));
}

}  // namespace
}  // namespace stratagem::models::llama_test
