#include "bench/predict/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/config/placement.h"
#include "bench/timing/breakdown.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "tests/bench/error_of.h"
#include "tests/bench/outlines.h"

namespace stratagem::bench::predict_test {
namespace {

using ::testing::HasSubstr;

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "predict_pipeline",
                                             .options = {"split_size", "schedule"},
                                             .multi_device = true,
                                             .outline = cut_by_size()});
STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "predict_model_parallel", .options = {"cut"}, .multi_device = true});
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "predict_gpipe",
                                             .options = {"split_size"},
                                             .multi_device = true,
                                             .outline = cut_by_size("gpipe")});
STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "predict_single"});

Config row_of(const std::string& strategy, std::int64_t batch, std::int64_t split) {
  Config row;
  row.strategy = strategy;
  row.devices = 2;
  row.global_batch_size = batch;
  row.split_size = split;
  row.schedule = "1f1b";
  return row;
}

/// What a sample costs in forward, first and later backward; copies and optimizer are constants.
struct Rates {
  double forward = 1;
  double first_backward = 2;
  double backward = 3;
  double constant = 0;  // of every computation
};

schedules::Timeline predict_stages(const Config& row, const std::vector<ActionCost>& costs) {
  return predict_timeline(row, {.costs = costs});
}

/// All costs of two stages for micro-batches of `samples`.
std::vector<ActionCost> costs_of(std::int64_t samples, const Rates& rates = {}) {
  std::vector<ActionCost> costs;
  const auto n = static_cast<double>(samples);
  for (const int stage : {0, 1}) {
    costs.push_back({"copy_input", stage, samples, false, 0});
    costs.push_back({"forward", stage, samples, false, rates.constant + rates.forward * n});
    costs.push_back({"backward", stage, samples, true, rates.constant + rates.first_backward * n});
    costs.push_back({"backward", stage, samples, false, rates.constant + rates.backward * n});
    costs.push_back({stage == 0 ? "copy_gradient" : "copy_activation", stage, samples, false, 0.5});
    costs.push_back({"optimizer", stage, 0, false, 0.25});
  }
  return costs;
}

TEST(Predict, TheRampOfStepsThatOverlapIsInTheFirst) {
  std::vector<ActionCost> costs;
  for (const int stage : {0, 1}) {
    costs.push_back({"copy_input", stage, 1, false, 0});
    costs.push_back({"forward", stage, 1, false, 1});
    costs.push_back({"backward_input", stage, 1, false, 1});
    costs.push_back({"backward_weight", stage, 1, true, 1});
    costs.push_back({"backward_weight", stage, 1, false, 1});
    costs.push_back({stage == 0 ? "copy_gradient" : "copy_activation", stage, 1, false, 0});
    costs.push_back({"optimizer", stage, 0, false, 0});
  }
  Config row = row_of("predict_pipeline", 4, 1);
  row.schedule = "zb_h2";
  row.steps = 2;
  EXPECT_DOUBLE_EQ(predict_step_ms(row, {.costs = costs}), 3 * 4 + 0.5);
  row.steps = 4;
  EXPECT_DOUBLE_EQ(predict_step_ms(row, {.costs = costs}), 3 * 4 + 0.25);
  row.protocol = "isolated";
  EXPECT_DOUBLE_EQ(predict_step_ms(row, {.costs = costs}), 3 * 4 + 1);
}

TEST(Predict, ScheduleOfARow) {
  EXPECT_EQ(grid(plan_of(row_of("predict_pipeline", 5, 2)).schedule),
            grid(schedules::make_schedule("1f1b", 2, 3)));
  EXPECT_EQ(grid(plan_of(row_of("predict_model_parallel", 5, 2)).schedule),
            grid(schedules::make_schedule("naive", 2, 1)));
  EXPECT_EQ(grid(plan_of(row_of("predict_gpipe", 5, 2)).schedule),
            grid(schedules::make_schedule("gpipe", 2, 3)));
  EXPECT_EQ(grid(plan_of(row_of("predict_single", 5, 2)).schedule),
            grid(schedules::make_schedule("naive", 1, 1)));
}

TEST(Predict, ByHandFor1f1b) {
  // Micro-batches of one sample: F 1, first B 2, later B 3, copies 0.5, optimizer 0.25.
  //   device 1: CF0 ends 1.5, F0 2.5, B0 4.5, CF1 5.0, F1 6.0, B1 9.0, O
  //   device 0: F0 1, F1 2, CB0 5.0, B0 7.0, CB1 from 9.0 to 9.5, B1 12.5, O 12.75
  const auto timeline = predict_stages(row_of("predict_pipeline", 2, 1), costs_of(1));
  EXPECT_DOUBLE_EQ(timeline.step_ms, 12.75);
  EXPECT_DOUBLE_EQ(predict_step_ms(row_of("predict_pipeline", 2, 1), {.costs = costs_of(1)}),
                   12.75);
}

TEST(Predict, HasTheStepsOfBothQuartiles) {
  const Config row = row_of("predict_pipeline", 2, 1);
  StageCosts costs{.costs = costs_of(1)};
  for (ActionCost& cost : costs.costs) cost.spread = {.low = 0.9, .high = 1.2};
  const Prediction found = predict(row, costs);
  EXPECT_DOUBLE_EQ(found.low_ms, 0.9 * found.step_ms);
  EXPECT_DOUBLE_EQ(found.high_ms, 1.2 * found.step_ms);
}

TEST(Predict, ACopyEngineHidesTransfers) {
  // CF1 overlaps F0, so F1 starts at 4.5 and B1 ends at 8.5; then CB1, B1 and O.
  Config row = row_of("predict_pipeline", 2, 1);
  row.device = "cuda";
  EXPECT_DOUBLE_EQ(predict_stages(row, costs_of(1)).step_ms, 8.5 + 0.5 + 3 + 0.25);
}

TEST(Predict, BetweenRanksAReceiveCostsWhatTheCopyDoesInOneProcess) {
  Config row = row_of("predict_pipeline", 2, 1);
  row.clip_gradients = 1;
  auto costs = costs_of(1);
  for (const int stage : {0, 1}) costs.push_back({"gradient_norm", stage, 0, false, 0.5});
  const schedules::Timeline in_one_process = predict_stages(row, costs);
  row.ranks = 2;
  const schedules::Timeline over_ranks = predict_stages(row, costs);
  EXPECT_DOUBLE_EQ(over_ranks.step_ms, in_one_process.step_ms);
  const auto count = [&](schedules::ActionKind kind) {
    return std::ranges::count_if(over_ranks.entries,
                                 [&](const auto& entry) { return entry.action.kind == kind; });
  };
  EXPECT_EQ(count(schedules::ActionKind::receive_activation), 2);
  EXPECT_EQ(count(schedules::ActionKind::norm_sum), 2);
}

TEST(Predict, WhatRunsAloneCostsLess) {
  // One device at a time: every action at its cost alone, half of 25.25, but for 1O, which runs
  // overlapping 0CB. Both take twice as long until 1O ends after 0.25; 0CB has half of its way
  // left.
  auto costs = costs_of(4);
  for (auto& cost : costs) cost.alone_ms = 0.5 * cost.ms;
  EXPECT_DOUBLE_EQ(predict_stages(row_of("predict_model_parallel", 4, 1), costs).step_ms,
                   0.5 * 25.25 + 0.125);
  // Side by side it lies between the two.
  const double together = predict_stages(row_of("predict_pipeline", 8, 4), costs).step_ms;
  for (auto& cost : costs) cost.alone_ms = cost.ms;
  const double contended = predict_stages(row_of("predict_pipeline", 8, 4), costs).step_ms;
  EXPECT_LT(together, contended);
  EXPECT_GT(together, 0.5 * contended);
}

TEST(Predict, OneMicroBatchIsAFirstBackward) {
  // 0F 4, CF 0.5, 1F 4, 1B 8, CB 0.5, 0B 8, O 0.25
  EXPECT_DOUBLE_EQ(predict_stages(row_of("predict_model_parallel", 4, 1), costs_of(4)).step_ms,
                   25.25);
  EXPECT_DOUBLE_EQ(predict_stages(row_of("predict_single", 4, 1), costs_of(4)).step_ms,
                   4 + 8 + 0.25);
}

TEST(Predict, TheRemainderHasItsOwnCosts) {
  // gpipe on one pair of stages would do as well; naive makes the sum plain: every action in turn.
  Config row = row_of("predict_pipeline", 3, 2);
  row.schedule = "naive";
  auto costs = costs_of(2);
  for (const auto& cost : costs_of(1)) costs.push_back(cost);
  // Sizes 2 and 1; each both ways through two stages with two copies; then the optimizer.
  EXPECT_DOUBLE_EQ(predict_stages(row, costs).step_ms,
                   (2 * 2 + 2 * 4 + 1.0) + (2 * 1 + 2 * 3 + 1.0) + 0.25);
}

TEST(Predict, AMissingCostIsNamed) {
  const Config row = row_of("predict_pipeline", 4, 2);
  auto costs = costs_of(2);
  std::erase_if(costs, [](const ActionCost& cost) {
    return cost.kind == "copy_gradient" && cost.stage == 0;
  });
  EXPECT_EQ(error_of([&] { predict_stages(row, costs); }),
            "no calibrated cost for 0CB0 with 2 samples");
  EXPECT_THAT(error_of([&] { predict_stages(row, costs_of(3)); }), HasSubstr("with 2 samples"));
}

TEST(Predict, LaterBackwardsFallBackOnTheFirst) {
  // Calibrated on a row of one micro-batch, which has no later ones.
  auto costs = costs_of(1);
  std::erase_if(costs,
                [](const ActionCost& cost) { return cost.kind == "backward" && !cost.first; });
  EXPECT_DOUBLE_EQ(predict_stages(row_of("predict_pipeline", 2, 1), costs).step_ms, 11.75 - 1);
}

/// The costs of `samples` on the straight line through those of two other sizes.
std::vector<ActionCost> between(const std::vector<ActionCost>& small,
                                const std::vector<ActionCost>& large, std::int64_t samples) {
  std::vector<ActionCost> line = small;
  for (std::size_t index = 0; index < line.size(); ++index) {
    const auto [from, to] = std::pair(small[index], large[index]);
    if (from.samples == to.samples) continue;  // the optimizer's
    const double along = static_cast<double>(samples - from.samples) /
                         static_cast<double>(to.samples - from.samples);
    line[index].samples = samples;
    line[index].ms = std::lerp(from.ms, to.ms, along);
  }
  return line;
}

TEST(Predict, CostsAtTwoSplitsPredictTheOthers) {
  const Rates rates{.forward = 1.5, .first_backward = 2.5, .backward = 3.5, .constant = 0.7};
  for (const std::int64_t split : {1, 2, 4, 6, 12, 24}) {
    const Config row = row_of("predict_pipeline", 24, split);
    EXPECT_NEAR(
        predict_stages(row, between(costs_of(2, rates), costs_of(12, rates), split)).step_ms,
        predict_stages(row, costs_of(split, rates)).step_ms, 1e-9)
        << split;
  }
}

STRATAGEM_REGISTER(strategies::StrategyEntry{.name = "predict_replicated",
                                             .options = {"accumulation_steps"},
                                             .multi_device = true,
                                             .dimensions = {"data"},
                                             .outline = cut_by_count()});

/// A replica of two groups of layers, whose forward passes take 5 each, backward passes 10 (6 to
/// add gradients), updates 1 and the input 1; and a link that carries 1 MB in 1 ms without the
/// processor.
StageCosts replica_calibration() {
  StageCosts calibration{.links = {.all_reduce = {{1'000'000, 1.0, 0.0}, {9'000'000, 9.0, 0.0}}},
                         .groups = {{.gathered_bytes = 2'000'000, .summed_bytes = 2'000'000},
                                    {.gathered_bytes = 4'000'000, .summed_bytes = 4'000'000}}};
  for (const int group : {0, 1}) {
    calibration.costs.insert(calibration.costs.end(), {{"forward", group, 4, false, 5},
                                                       {"backward", group, 4, true, 10},
                                                       {"backward", group, 4, false, 6},
                                                       {"all_reduce_start", group, 0, false, 0},
                                                       {"all_reduce_wait", group, 0, false, 0},
                                                       {"optimizer", group, 0, false, 1}});
  }
  calibration.costs.push_back({"copy_input", 0, 4, false, 1});
  calibration.costs.push_back({"copy_input", 1, 4, false, 0});
  return calibration;
}

TEST(PredictReplicated, WhatIsReadyEarlyHides) {
  const Config row = row_of("predict_replicated", 8, 8);
  // The last group's sum is in flight beside the first one's backward pass, whose own is beside the
  // last group's update for half of its time.
  EXPECT_NEAR(predict_step_ms(row, replica_calibration()), 1 + 10 + 20 + 2 + 1, 1e-9);
}

TEST(PredictReplicated, QuartilesOfTheLinkCount) {
  const Config row = row_of("predict_replicated", 8, 8);
  StageCosts costs = replica_calibration();
  for (LinkTime& time : costs.links.all_reduce) time.spread.high = 4;
  const Prediction found = predict(row, costs);
  EXPECT_GT(found.high_ms, found.step_ms);
  EXPECT_EQ(found.low_ms, found.step_ms);
}

TEST(PredictReplicated, EveryReplicaHasItsTransfersBesideItsPasses) {
  const Config row = row_of("predict_replicated", 8, 8);
  const schedules::Timeline timeline = predict_timeline(row, replica_calibration());
  for (const int device : {0, 1}) {
    const reports::Breakdown parts = breakdown(timeline, device, 1);
    EXPECT_NEAR(parts.compute, 10 + 20, 1e-9);
    EXPECT_NEAR(parts.communication_hidden, 4 + 1, 1e-9);
    EXPECT_NEAR(parts.communication_exposed, 1, 1e-9);
    EXPECT_NEAR(parts.input_copy + parts.optimizer, 1 + 2, 1e-9);
    EXPECT_NEAR(parts.other, 0, 1e-9);
  }
}

TEST(PredictReplicated, OnlyTheLastOfSeveralPassesSends) {
  Config row = row_of("predict_replicated", 8, 8);
  row.accumulation_steps = 2;
  auto calibration = replica_calibration();
  for (ActionCost& cost : calibration.costs) cost.samples = cost.samples > 0 ? 2 : 0;
  EXPECT_NEAR(predict_step_ms(row, calibration), 2 * (1 + 10) + 20 + 12 + 2 + 1, 1e-9);
}

TEST(PredictReplicated, TheReplicaWithTheLargestShareSetsThePace) {
  // A batch of 7: shares of 4 and 3 samples.
  const Config row = row_of("predict_replicated", 7, 7);
  EXPECT_NEAR(predict_step_ms(row, replica_calibration()), 1 + 10 + 20 + 2 + 1, 1e-9);
}

TEST(CostsAlone, AreThoseOfADeviceThatNobodySlowsDown) {
  const auto alone = costs_alone({{"forward", 0, 4, false, 10, 9}});
  EXPECT_EQ(alone[0].ms, 9);
  EXPECT_EQ(alone[0].alone_ms, 9);
}

}  // namespace
}  // namespace stratagem::bench::predict_test
