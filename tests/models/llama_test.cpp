// Llama against PyTorch's, float64, as recorded by make_llama_reference.py; its size and its cost
// by formula; and its dimensions without memory.
#include "models/llama.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/loss.h"
#include "models/model.h"
#include "tests/models/parameter_count.h"
#include "tests/models/reference_values.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::llama_test {
namespace {

constexpr double tolerance = 1e-10;

void expect_close(double actual, double expected, double scale, const std::string& what) {
  EXPECT_LE(std::abs(actual - expected), tolerance * std::max(std::abs(expected), scale)) << what;
}

class LlamaReference : public testing::TestWithParam<bool> {};

TEST_P(LlamaReference, IsPyTorchs) {
  const SingleThread single_thread;
  const ReferenceKernelsGuard guard(!GetParam());
  std::ifstream file(STRATAGEM_TEST_DATA "/models/reference_llama.json");
  const auto expected = nlohmann::json::parse(file);
  const ModelEntry& entry = find_model("llama-tiny");
  const Model model = entry.make({});
  std::vector<std::string> names;
  auto all = parameters(model.layers);
  for (const auto& layer : model.layers) {
    layer->materialise(0, at::kCPU, at::kDouble, at::MemoryFormat::Contiguous);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const at::NoGradGuard no_grad;
    names.push_back(all[i].name);
    all[i].tensor.copy_(value(all[i].name, i, all[i].tensor.sizes()));
  }
  EXPECT_EQ(names, expected.at("parameters").get<std::vector<std::string>>());

  const std::int64_t batch = expected.at("batch");
  const at::Tensor drawn =
      ((uniform(expected.at("input_index"), {batch, entry.longest_sequence + 1}) + 0.5) *
       static_cast<double>(entry.classes))
          .to(at::kLong);
  const at::Tensor output =
      forward(model.layers, drawn.narrow(1, 0, entry.longest_sequence).contiguous());
  const at::Tensor value =
      loss(Loss::cross_entropy, output, drawn.narrow(1, 1, entry.longest_sequence), 1.0);
  expect_close(checksum(output), expected.at("output_checksum"), 1, "output");
  for (std::int64_t i = 0; i < 8; ++i) {
    expect_close(output[0][0][i].item<double>(),
                 expected.at("output_first")[static_cast<std::size_t>(i)], 1, "first outputs");
  }
  expect_close(value.item<double>(), expected.at("loss"), 0, "loss");
  value.backward();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double norm = expected.at("gradients")[i][0];
    const at::Tensor gradient = all[i].tensor.grad();
    expect_close(gradient.norm().item<double>(), norm, norm, names[i] + " norm");
    expect_close(checksum(gradient), expected.at("gradients")[i][1], norm, names[i] + " checksum");
  }
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
