// What the presets decide of their plans, by name, mesh and options.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "strategies/registry.h"

namespace stratagem::presets::outline_test {
namespace {

using strategies::Arrangement;
using strategies::MicroBatchOption;

struct Case {
  std::string strategy;
  Arrangement arrangement;
  std::int64_t accumulation_steps;
  std::string schedule;
  MicroBatchOption cut_by;
};

constexpr Arrangement alone{};
constexpr Arrangement stages{.devices = 2};
constexpr Arrangement replicas{.replicas = 2};
constexpr Arrangement both{.replicas = 2, .devices = 2};
constexpr Arrangement layers{.tensor_ranks = 2};
constexpr Arrangement layers_and_stages{.devices = 2, .tensor_ranks = 2};
constexpr auto by_size = MicroBatchOption::split_size;
constexpr auto by_count = MicroBatchOption::accumulation_steps;

TEST(Outlines, OfThePresets) {
  const std::vector<Case> cases = {{"single", alone, 1, "naive", by_count},
                                   {"single", alone, 3, "naive", by_count},
                                   {"model_parallel", stages, 1, "naive", by_count},
                                   {"model_parallel", stages, 3, "naive", by_count},
                                   {"pipeline", alone, 1, "gpipe", by_size},
                                   {"pipeline", stages, 1, "gpipe", by_size},
                                   {"pipeline", stages, 3, "gpipe", by_count},
                                   {"pipeline", both, 1, "gpipe", by_size},
                                   {"ddp", replicas, 1, "naive", by_count},
                                   {"ddp", both, 1, "gpipe", by_size},
                                   {"ddp_model_parallel", both, 1, "gpipe", by_size},
                                   {"zero3", replicas, 1, "naive", by_count},
                                   {"zero3", replicas, 3, "naive", by_count},
                                   {"zero3", both, 1, "gpipe", by_size},
                                   {"tensor_parallel", layers, 1, "naive", by_count},
                                   {"tensor_parallel", layers_and_stages, 1, "gpipe", by_size}};
  for (const Case& of : cases) {
    const strategies::PlanRequest request{
        .options = {.accumulation_steps = of.accumulation_steps, .schedule = "gpipe"},
        .arrangement = of.arrangement};
    const auto outline = strategies::find_strategy(of.strategy).outline(request);
    SCOPED_TRACE(of.strategy + ", " + std::to_string(of.arrangement.devices) + " stages, " +
                 std::to_string(of.accumulation_steps) + " micro-batches");
    EXPECT_EQ(outline.schedule, of.schedule);
    EXPECT_EQ(outline.cut_by, of.cut_by);
    EXPECT_FALSE(outline.has_partial_gradients);
    EXPECT_FALSE(outline.in_one_process);
  }
}

TEST(Outlines, RanksThatShareASequenceSumPartialGradients) {
  const auto outline_on = [](const Arrangement& arrangement) {
    return strategies::find_strategy("sequence_parallel").outline({.arrangement = arrangement});
  };
  EXPECT_TRUE(outline_on(layers).has_partial_gradients);
  EXPECT_TRUE(outline_on(layers_and_stages).has_partial_gradients);
  EXPECT_FALSE(outline_on(replicas).has_partial_gradients);
}

TEST(Outlines, OneProcessAloneHasReplicasWithoutStages) {
  for (const std::string& name : strategies::strategy_names()) {
    const strategies::StrategyEntry& entry = strategies::find_strategy(name);
    if (!entry.make) continue;
    EXPECT_EQ(entry.outline({}).in_one_process, entry.one_process) << name;
  }
}

}  // namespace
}  // namespace stratagem::presets::outline_test
