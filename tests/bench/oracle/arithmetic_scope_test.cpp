#include "bench/oracle/arithmetic_scope.h"

#include <gtest/gtest.h>

namespace stratagem::bench::arithmetic_scope_test {
namespace {

constexpr ScopeTraits images = {.has_images = true, .has_batch_norm = true};
constexpr ScopeTraits tokens = {.has_tokens = true};

Config row_of(std::int64_t batch, std::int64_t split, std::int64_t image = 128,
              std::int64_t sequence = 0) {
  Config row;
  row.global_batch_size = batch;
  row.split_size = split;
  row.image_size = image;
  row.sequence_length = sequence;
  return row;
}

/// A step whose operations are its elements, of a model of a million parameters.
StepSize elements_of(const Config& config, double width) {
  const double side = static_cast<double>(config.image_size + config.sequence_length);
  const double elements = config.image_size > 0 ? side * side : std::max(side, 1.0);
  return {.flops = static_cast<double>(config.global_batch_size) * elements * width,
          .parameters = static_cast<std::int64_t>(1e6 * width * width)};
}

std::string text(const Config& row, double affordable, const ScopeTraits& traits = images,
                 strategies::MicroBatchOption counted = strategies::MicroBatchOption::split_size,
                 std::int64_t replicas = 1, std::int64_t parameters = 1'000'000) {
  return shrink_step(row, traits, replicas, counted,
                     {.flops = affordable, .parameters = parameters}, elements_of)
      .text;
}

constexpr double image_128 = 128 * 128;

TEST(ArithmeticScope, IsTheRowWhereThatIsAffordable) {
  EXPECT_EQ(text(row_of(48, 12), 48 * image_128), "full size");
  const Config row = row_of(48, 12);
  const Config same = shrink_step(row, images, 1, strategies::MicroBatchOption::split_size,
                                  {1e12, 1'000'000}, elements_of)
                          .config;
  EXPECT_EQ(same.dtype, row.dtype);
  EXPECT_EQ(same.split_size, row.split_size);
  EXPECT_EQ(same.learning_rate, 0.1) << "an update that shows";
}

TEST(ArithmeticScope, TakesWholeMicroBatchesFirst) {
  EXPECT_EQ(text(row_of(48, 12), 47 * image_128), "batch 48 -> 36");
  EXPECT_EQ(text(row_of(48, 12), 24 * image_128), "batch 48 -> 24");
  EXPECT_EQ(text(row_of(53, 12), 30 * image_128), "batch 53 -> 29") << "and keeps the remainder";
  EXPECT_EQ(
      text(row_of(96, 12), 48 * image_128, images, strategies::MicroBatchOption::split_size, 2),
      "batch 96 -> 48")
      << "of each replica";
  Config row = row_of(48, 12);
  row.accumulation_steps = 4;
  const auto scope = shrink_step(row, images, 2, strategies::MicroBatchOption::accumulation_steps,
                                 {24 * image_128, 1'000'000}, elements_of);
  EXPECT_EQ(scope.text, "batch 48 -> 24");
  EXPECT_EQ(scope.config.accumulation_steps, 2);
}

TEST(ArithmeticScope, ThenImageOrSequenceThenSamples) {
  EXPECT_EQ(text(row_of(48, 12), 23 * image_128), "batch 48 -> 24, image 128 -> 96");
  EXPECT_EQ(text(row_of(48, 48), 12 * image_128, images, strategies::MicroBatchOption::none),
            "image 128 -> 64");
  EXPECT_EQ(text(row_of(8, 4, 0, 128), 8 * 32, tokens), "sequence 128 -> 32");
  EXPECT_EQ(text(row_of(8, 4, 0, 128), 4 * 16, tokens),
            "batch 8 -> 4, sequence 128 -> 16, split 4 -> 2");
  EXPECT_EQ(text(row_of(64, 64, 0), 16, {}, strategies::MicroBatchOption::none), "batch 64 -> 16");
}

TEST(ArithmeticScope, LeavesEnoughToEveryBatchNorm) {
  const auto scope =
      shrink_step(row_of(48, 12), images, 1, strategies::MicroBatchOption::split_size,
                  {1, 1'000'000}, elements_of);
  EXPECT_EQ(scope.config.image_size, 32);
  EXPECT_GE(scope.config.split_size, 8);
  EXPECT_EQ(scope.width, 0.125) << "the last that is left";
}

TEST(ArithmeticScope, NarrowsWhatHasTooManyParameters) {
  EXPECT_EQ(
      text(row_of(48, 12), 1e12, images, strategies::MicroBatchOption::split_size, 1, 300'000),
      "width x0.5");
}

TEST(LayerScope, TakesSamplesWhileKernelsStayThenTheImage) {
  const LayerScope full{.samples = {48, 20}, .image_size = 128};
  const auto flops = [](const LayerScope& scope) {
    return static_cast<double>(scope.samples[0] * scope.image_size * scope.image_size);
  };
  const auto shrunk = [&](double samples) {
    return difference(full, shrink_layers(full, images, samples * image_128, flops));
  };
  EXPECT_EQ(shrunk(48), "full size");
  EXPECT_EQ(shrunk(40), "micro-batch 48 -> 36");
  EXPECT_EQ(shrunk(16), "micro-batch 48 -> 16");
  EXPECT_EQ(shrunk(15), "micro-batch 48 -> 16, image 128 -> 96");
  EXPECT_EQ(shrunk(1), "micro-batch 48 -> 16, image 128 -> 32");
  EXPECT_EQ(shrunk(0.5), "micro-batch 48 -> 8, image 128 -> 32");
}

}  // namespace
}  // namespace stratagem::bench::arithmetic_scope_test
