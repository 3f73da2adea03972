#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "bench/config/placement.h"
#include "bench/predict/group_cost_keys.h"
#include "bench/predict/group_cost_table.h"
#include "bench/predict/predict.h"
#include "bench/predict/sharding_choice.h"
#include "bench/timing/breakdown.h"
#include "strategies/registry.h"
#include "tests/bench/outlines.h"
#include "tests/bench/predict/executed.h"

namespace stratagem::bench::predict_sharded_test {
namespace {

using schedules::ActionKind;
using ::testing::ElementsAre;

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "predict_sharded",
                                             .options = {"accumulation_steps"},
                                             .multi_device = true,
                                             .dimensions = {"data"},
                                             .outline = cut_by_count(),
                                             .shards = schedules::Sharded("parameters")});

constexpr std::int64_t mebi = 1 << 20;

Config row_of(std::int64_t batch, std::int64_t split) {
  Config row;
  row.strategy = "predict_sharded";
  row.devices = 2;
  row.global_batch_size = batch;
  row.accumulation_steps = ((batch + 1) / 2 + split - 1) / split;
  return row;
}

ActionMemory memory_of(const ActionCost& cost, ActionKind kind) {
  ActionMemory memory{
      .kind = cost.kind, .stage = cost.stage, .samples = cost.samples, .first = cost.first};
  const auto keeps = [&](const char* purpose, std::int64_t bytes, std::int64_t most) {
    memory.kept = {{purpose, bytes}};
    memory.most_bytes = most;
  };
  if (kind == ActionKind::forward) keeps("activations", 10, 12);
  if (kind == ActionKind::backward) keeps("activations", -10, 20);
  if (kind == ActionKind::unshard) keeps("communication", 100, 100);
  if (kind == ActionKind::reshard) keeps("communication", -100, 0);
  if (kind == ActionKind::reduce_scatter) keeps("gradients", 30, 30);
  if (kind == ActionKind::gradient_wait) keeps("gradients", -30, 0);
  return memory;
}

/// Two groups with parameters of 3 MiB, forward passes of 2 ms, backward passes of 4 and updates of
/// 1; a link that carries 1 MiB a millisecond. A pass keeps 10 bytes until its backward pass, whole
/// parameters take 100, and what is scattered 30.
StageCosts calibration_of(const Config& row) {
  StageCosts costs{.groups = {{0, 3 * mebi, 3 * mebi}, {0, 3 * mebi, 3 * mebi}},
                   .memory = {.resting = {{{"parameters", 1000}}}}};
  costs.links.gather = {{mebi, 1.0, 0.0}, {8 * mebi, 8.0, 0.0}};
  costs.links.scatter = costs.links.gather;
  const strategies::StepPlan plan = plan_of(row, parts_of(costs));
  const GroupCostKeys keys(plan.schedule, samples_of(plan));
  for (const schedules::Action& action : plan.schedule.actions.front()) {
    const auto [kind, group, samples, first] = keys.of(action);
    ActionCost cost{.kind = kind, .stage = group, .samples = samples, .first = first};
    if (action.kind == ActionKind::forward) cost.ms = 2;
    if (action.kind == ActionKind::backward) cost.ms = 4;
    if (action.kind == ActionKind::optimizer) cost.ms = 1;
    costs.memory.actions.push_back(memory_of(cost, action.kind));
    costs.costs.push_back(cost);
  }
  return costs;
}

TEST(PredictSharded, GathersAndScattersAreInFlightOnTheLink) {
  const Config row = row_of(4, 4);
  const schedules::Timeline timeline = predict_timeline(row, calibration_of(row));
  // As Simulate.WhatIsInFlightRunsBesideTheDevicesList, with scatters of 3 ms.
  EXPECT_NEAR(timeline.step_ms, 12 + 4 + 3 + 1, 1e-9);
  for (const int device : {0, 1}) {
    const reports::Breakdown parts = breakdown(timeline, device, 1);
    EXPECT_NEAR(parts.compute, 12, 1e-9);
    EXPECT_NEAR(parts.communication_exposed, 3 + 1 + 2, 1e-9);
    EXPECT_NEAR(parts.optimizer, 2, 1e-9);
  }
}

TEST(PredictSharded, TheTimesOfAStepThatWasRunPredictIt) {
  const Config row = row_of(4, 4);
  StageCosts costs = calibration_of(row);
  const strategies::StepPlan plan = plan_of(row, parts_of(costs));
  schedules::Execution step;
  double now = 0;
  for (const schedules::Action& action : plan.schedule.actions.front()) {
    const double ms = action.kind == ActionKind::forward     ? 2
                      : action.kind == ActionKind::backward  ? 4
                      : action.kind == ActionKind::optimizer ? 1
                                                             : 0;
    step.push_back(executed(action, now, now + ms));
    now += ms;
  }
  GroupCostTable table(GroupCostKeys(plan.schedule, samples_of(plan)));
  table.add(step);
  costs.costs = table.costs();
  EXPECT_NEAR(predict_step_ms(row, costs), 12 + 4 + 3 + 1, 1e-9);
}

TEST(PredictSharded, TransfersTakeTheProcessorFromTheCoreOfACpuDeviceAlone) {
  Config row = row_of(4, 4);
  StageCosts costs = calibration_of(row);
  for (auto* link : {&costs.links.gather, &costs.links.scatter}) {
    for (LinkTime& measured : *link) measured.processor_share = 1;
  }
  // Transfers that need a whole core hide nothing: passes, updates, three gathers and two scatters
  // add up.
  EXPECT_NEAR(predict_step_ms(row, costs), 12 + 2 + 5 * 3, 1e-9);
  row.device = "cuda";
  EXPECT_NEAR(predict_step_ms(row, costs), 12 + 4 + 3 + 1, 1e-9);
}

TEST(PredictSharded, HoldsAtMostWhatTheListHasAllocatedByThen) {
  const Config row = row_of(4, 4);
  // Both groups whole and both passes kept when the second group's backward pass runs.
  const Prediction found = predict(row, calibration_of(row));
  EXPECT_EQ(found.peak_bytes, 1000 + 200 + 20 + 20);
  const BytesByPurpose resting = {{"parameters", 1000}};
  const BytesByPurpose held = {{"parameters", 1000}, {"activations", 20}, {"communication", 200}};
  ASSERT_EQ(found.memory.size(), 2U);
  for (const std::vector<MemoryAt>& own : found.memory) {
    EXPECT_EQ(std::ranges::max_element(own, {}, &MemoryAt::most_bytes)->held, held);
    EXPECT_EQ(own.front().held, resting);
    EXPECT_EQ(own.back().held, resting) << "the step leaves what it found";
    EXPECT_TRUE(std::ranges::is_sorted(own, {}, &MemoryAt::ms));
  }
}

TEST(PredictSharded, ReplicasOfUnequalSharesHaveAsManyMicroBatches) {
  // Shares of 3 and 2, in two micro-batches each: 2 and 1, and 1 and 1.
  EXPECT_THAT(samples_of(plan_of(row_of(5, 2))), ElementsAre(2, 1));
}

TEST(PredictSharded, CostsOfOneWindowPredictTheOthers) {
  const Config row = row_of(8, 2);
  const auto calibration_on_a_slow_link = [](const Config& of) {
    StageCosts costs = calibration_of(of);
    costs.links.gather = {{mebi, 10.0, 0.0}, {8 * mebi, 80.0, 0.0}};
    return costs;
  };
  const auto choices = sharding_choices(row, calibration_on_a_slow_link(row));
  EXPECT_EQ(choices.size(), 10U);
  EXPECT_TRUE(std::ranges::is_sorted(
      choices, {}, [](const ShardingChoice& choice) { return choice.predicted.step_ms; }));
  const auto step_ms = [&](bool reshards) {
    const auto found = std::ranges::find_if(choices, [&](const ShardingChoice& choice) {
      return choice.prefetch == 1 && choice.reshard_after_forward == reshards;
    });
    return found->predicted.step_ms;
  };
  EXPECT_LT(step_ms(false), step_ms(true)) << "what stays is gathered once";
  const auto least = std::ranges::min_element(
      choices, {}, [](const ShardingChoice& choice) { return choice.predicted.peak_bytes; });
  EXPECT_TRUE(least->reshard_after_forward);
  EXPECT_EQ(least->prefetch, 0);
  EXPECT_LT(*least->predicted.peak_bytes, *choices.front().predicted.peak_bytes);
  for (const ShardingChoice& choice : choices) {
    const Config chosen = with_choice(row, choice);
    EXPECT_NEAR(choice.predicted.step_ms,
                predict_step_ms(chosen, calibration_on_a_slow_link(chosen)), 1e-9);
  }
}

TEST(PredictSharded, WhatWasNotCalibratedIsRefused) {
  const Config row = row_of(4, 4);
  StageCosts costs = calibration_of(row);
  costs.costs.pop_back();
  EXPECT_THROW(predict_step_ms(row, costs), std::invalid_argument);
  costs = calibration_of(row);
  costs.links.gather.clear();
  EXPECT_THROW(predict_step_ms(row, costs), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::bench::predict_sharded_test
