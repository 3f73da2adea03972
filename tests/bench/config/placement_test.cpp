#include "bench/config/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "strategies/registry.h"
#include "tests/bench/outlines.h"

namespace stratagem::bench::placement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "place_staged", .multi_device = true});
STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "place_replicated", .multi_device = true, .dimensions = {"data"}});
STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "place_both", .multi_device = true, .dimensions = {"data", "pipeline"}});
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "place_alone"});

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "place_wide",
                                             .multi_device = true,
                                             .dimensions = {"data", "pipeline", "tensor"},
                                             .usual_dimensions = {"data"}});

STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "place_cut", .multi_device = true, .outline = cut_by_size("gpipe")});

Config config_of(const std::string& strategy, std::int64_t devices, std::int64_t ranks = 0,
                 const std::string& mesh = "auto") {
  Config config;
  config.strategy = strategy;
  config.devices = devices;
  config.ranks = ranks;
  config.mesh = mesh;
  return config;
}

std::string refusal(const Config& config) {
  try {
    placement_of(config);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Placement, AStrategySaysHowItSpreads) {
  const Placement one = placement_of(config_of("place_alone", 4, 4));
  EXPECT_EQ(one.devices(), 1);
  EXPECT_EQ(one.ranks, 1);
  const Placement stages = placement_of(config_of("place_staged", 4));
  EXPECT_EQ(stages.pipeline_devices(), 4);
  EXPECT_EQ(stages.ranks, 1);
  const Placement replicas = placement_of(config_of("place_replicated", 4));
  EXPECT_EQ(replicas.replicas(), 4);
  EXPECT_EQ(replicas.ranks, 4);
  const Placement mixed = placement_of(config_of("place_both", 4));
  EXPECT_EQ(mixed.mesh.to_string(), "data=2/pipeline=2/tensor=1");
  EXPECT_EQ(mixed.ranks, 2);
  EXPECT_EQ(mixed.devices_per_rank(), 2);
}

TEST(Placement, AReplicaMayBeSpreadOverRanks) {
  const Placement placement = placement_of(config_of("place_both", 8, 4));
  EXPECT_EQ(placement.replicas(), 4);
  EXPECT_EQ(placement.pipeline_ranks(), 1);
  const Placement wide = placement_of(config_of("place_both", 8, 4, "data=2/pipeline=4"));
  EXPECT_EQ(wide.pipeline_ranks(), 2);
  EXPECT_EQ(wide.replica_of(1), 0);
  EXPECT_EQ(wide.replica_of(2), 1);
  EXPECT_THAT(wide.group(1, {"data"}), ElementsAre(1, 3));
  EXPECT_THAT(wide.group(3, {"pipeline"}), ElementsAre(2, 3));
  EXPECT_THAT(wide.group(3, {"tensor"}), ElementsAre(3));
}

TEST(Placement, AMeshHasMoreDimensionsThanTheUsualOnes) {
  Config config = config_of("place_wide", 4);
  EXPECT_EQ(placement_of(config).replicas(), 4);
  config.mesh = "data=2/pipeline=2";
  EXPECT_EQ(placement_of(config).pipeline_devices(), 2);
  config.mesh = "data=2/tensor=2";
  EXPECT_EQ(placement_of(config).ranks, 4);
}

TEST(Placement, MoreMicroBatchesThanTheMemoryHoldsAreRefused) {
  Config config = config_of("place_cut", 2);
  config.global_batch_size = 1'000'000'000'000;
  config.split_size = 1;
  EXPECT_THAT([&] { slices_of(config); }, testing::ThrowsMessage<std::invalid_argument>(
                                              testing::StartsWith("--split-size 1: ")));
  config.split_size = config.global_batch_size / 2;
  EXPECT_EQ(slices_of(config).size(), 2U);
}

TEST(Placement, RefusesInOneLine) {
  EXPECT_THAT(refusal(config_of("place_staged", 4, 3)), HasSubstr("--ranks 3"));
  EXPECT_THAT(refusal(config_of("place_both", 4, 1)), HasSubstr("--ranks 1"));
  EXPECT_THAT(refusal(config_of("place_both", 3)), HasSubstr("an even number"));
  EXPECT_THAT(refusal(config_of("place_both", 4, 0, "data=3/pipeline=2")),
              HasSubstr("has 6 devices, but --devices is 4"));
  EXPECT_THAT(
      refusal(config_of("place_replicated", 4, 0, "data=2/pipeline=2")),
      HasSubstr(
          "has no dimension pipeline; its dimensions are data; strategies with pipeline are "));
  EXPECT_THAT(refusal(config_of("place_replicated", 4, 0, "data=2/tensor=2")),
              HasSubstr("strategies with tensor are "));
  EXPECT_THAT(refusal(config_of("place_both", 4, 0, "data=two")), HasSubstr("data=two"));
}

}  // namespace
}  // namespace stratagem::bench::placement_test
