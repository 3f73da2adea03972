// GPT against PyTorch's, float64, as recorded by make_gpt_reference.py; its size and its cost by
// formula; and that it learns.
#include "models/gpt.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/distributed_sampler.h"
#include "models/optimizer.h"
#include "models/token_data.h"
#include "models/workload.h"
#include "tests/models/language_model_reference.h"
#include "tests/models/parameter_count.h"
#include "tests/models/reference_values.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::gpt_test {
namespace {

constexpr GptSize kTiny{64, 2, 4, 32, 256};
constexpr GptSize kSmall{512, 8, 8, 128, 8192};

class GptReference : public testing::TestWithParam<bool> {};

TEST_P(GptReference, IsPyTorchs) {
  const SingleThread single_thread;
  const ReferenceKernelsGuard guard(!GetParam());
  expect_pytorchs("gpt-tiny", "reference_gpt.json", 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Linear, GptReference, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "own" : "atens"; });

/// vocabulary x features twice, longest sequence x features, 12 features^2 + 13 features a block,
/// and 2 features of the last normalisation.
std::int64_t gpt_parameter_count(const GptSize& size) {
  const std::int64_t d = size.features;
  return 2 * size.vocabulary * d + size.longest_sequence * d + size.blocks * (12 * d * d + 13 * d) +
         2 * d;
}

/// Forward and backward: 6 a parameter of the products, and 12 features x sequence a block for
/// attention (Chowdhery et al. 2022, "PaLM", appendix B; without the mask's half).
double gpt_flops_per_token(const GptSize& size, std::int64_t sequence) {
  const auto d = static_cast<double>(size.features);
  const auto blocks = static_cast<double>(size.blocks);
  const double products = 12 * d * d * blocks + static_cast<double>(size.vocabulary) * d;
  return 6 * products + 12 * d * blocks * static_cast<double>(sequence);
}

TEST(Gpt, ParametersAreThoseOfTheFormula) {
  for (const auto& [name, size] : {std::pair{"gpt-tiny", kTiny}, std::pair{"gpt-small", kSmall}}) {
    const Model model = find_model(name).make({});
    EXPECT_EQ(parameter_count(model.layers), gpt_parameter_count(size)) << name;
  }
  EXPECT_EQ(gpt_parameter_count(kSmall), 33'674'240);
  EXPECT_EQ(parameter_count(find_model("gpt2").make({}).layers), 163'037'184);
  EXPECT_EQ(parameter_count(find_model("gpt2-xl").make({}).layers), 1'638'022'400);
}

TEST(Gpt, FlopsAreThoseOfTheFormula) {
  const Model model = find_model("gpt-small").make({});
  constexpr std::int64_t batch = 2;
  constexpr std::int64_t sequence = 128;
  const double counted = flops(model.layers, {batch, sequence}, false).total();
  EXPECT_DOUBLE_EQ(counted, gpt_flops_per_token(kSmall, sequence) * batch * sequence);
}

TEST(Gpt, WidthKeepsTheHeads) {
  const Model model = find_model("gpt-small").make({.width = 0.125});
  EXPECT_EQ(output_shape(model.layers, {2, 16}), (Shape{2, 16, 8192}));
  EXPECT_EQ(model.layers[1]->output_shape({2, 16, 64}), (Shape{2, 16, 64}));
}

TEST(Gpt, SequencesAndLossesThatDoNotFitAreRefused) {
  WorkloadOptions options{.model = "gpt-tiny", .loss = Loss::cross_entropy};
  EXPECT_EQ(Workload(options).input_shape(4), (Shape{4, 32}));
  options.sequence_length = 33;
  EXPECT_THROW(Workload{options}, std::invalid_argument);
  options.sequence_length = 8;
  options.loss = Loss::mse;
  EXPECT_THROW(Workload{options}, std::invalid_argument);
}

TEST(TokenData, TargetsAreTheNextTokens) {
  for (const auto source : {TokenSource::random, TokenSource::text}) {
    WorkloadOptions options{.model = "gpt-tiny", .batch = 3, .loss = Loss::cross_entropy};
    options.tokens = source;
    const Batch batch = Workload(options).make_batch(1);
    EXPECT_EQ(batch.inputs.sizes(), (std::vector<std::int64_t>{3, 32}));
    EXPECT_TRUE(at::equal(batch.inputs.narrow(1, 1, 31), batch.targets.narrow(1, 0, 31)));
    EXPECT_FALSE(at::equal(batch.inputs, Workload(options).make_batch(2).inputs));
    EXPECT_LT(batch.targets.max().item<std::int64_t>(), 256);
  }
}

TEST(TokenData, TheTextIsWhole) {
  EXPECT_GT(training_text().size(), 290'000U);
  EXPECT_EQ(training_text().substr(0, 14), "First Citizen:");
}

TEST(TokenData, AnEpochOfTheTextHasEveryWindowOnceInTheSamplersOrder) {
  constexpr std::int64_t length = 1001;
  const std::int64_t samples = text_samples(length);
  const at::Tensor epochs = text_tokens(0, 2 * samples, length, 256, /*seed=*/7);
  DistributedSampler sampler({.samples = samples, .seed = 7});
  for (const std::int64_t epoch : {0, 1}) {
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    const auto order = sampler.indices();
    for (std::int64_t place = 0; place < samples; ++place) {
      const std::int64_t start = order[static_cast<std::size_t>(place)] * (length - 1);
      const at::Tensor sample = epochs[epoch * samples + place];
      const auto first = sample[0].item<std::int64_t>();
      const auto last = sample[length - 1].item<std::int64_t>();
      EXPECT_EQ(first, training_text()[static_cast<std::size_t>(start)]);
      EXPECT_EQ(last, training_text()[static_cast<std::size_t>(start + length - 1)]);
    }
  }
  // A batch in the middle, over the border of two epochs.
  EXPECT_TRUE(at::equal(text_tokens(static_cast<std::uint64_t>(samples) - 2, 5, length, 256, 7),
                        epochs.narrow(0, samples - 2, 5)));
  EXPECT_THROW(text_tokens(0, 1, length, 255, 7), std::invalid_argument);
}

TEST(Gpt, LearnsTheText) {
  const SingleThread single_thread;
  WorkloadOptions options{.model = "gpt-tiny", .batch = 16, .loss = Loss::cross_entropy};
  options.tokens = TokenSource::text;
  options.optimizer = {.kind = OptimizerOptions::Kind::adamw, .learning_rate = 3e-3};
  const Workload workload(options);
  const Model model = workload.make_model();
  Optimizer optimizer = workload.make_optimizer(parameters(model.layers));
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 60; ++step) {
    const Batch batch = workload.make_batch(step);
    optimizer.zero_grad();
    const at::Tensor value = workload.loss(forward(model.layers, batch.inputs), batch.targets, 1.0);
    value.backward();
    optimizer.step();
    losses.push_back(value.item<double>());
  }
  EXPECT_NEAR(losses.front(), std::log(256.0), 0.1);
  EXPECT_LT(losses.back(), 3.4);
}

}  // namespace
}  // namespace stratagem::models::gpt_test
