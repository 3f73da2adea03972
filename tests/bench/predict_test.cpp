#include "bench/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "strategies/pipeline/schedule_registry.h"
#include "strategies/registry.h"
#include "tests/bench/error_of.h"

namespace stratagem::bench {
namespace {

using ::testing::HasSubstr;

const strategies::StrategyRegistration pipeline_like{{.name = "predict_pipeline",
                                                      .summary = "",
                                                      .options = {"split_size", "schedule"},
                                                      .multi_device = true,
                                                      .make = {}}};
const strategies::StrategyRegistration model_parallel_like{{.name = "predict_model_parallel",
                                                            .summary = "",
                                                            .options = {"cut"},
                                                            .multi_device = true,
                                                            .make = {}}};
const strategies::StrategyRegistration single_like{
    {.name = "predict_single", .summary = "", .options = {}, .multi_device = false, .make = {}}};

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

TEST(Predict, CostsSurviveJson) {
  auto costs = costs_of(3);
  for (auto& cost : costs) cost.alone_ms = 0.75 * cost.ms;
  const auto again = costs_from_json(costs_to_json(costs));
  ASSERT_EQ(again.size(), costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    EXPECT_EQ(again[i].kind, costs[i].kind);
    EXPECT_EQ(again[i].stage, costs[i].stage);
    EXPECT_EQ(again[i].samples, costs[i].samples);
    EXPECT_EQ(again[i].first, costs[i].first);
    EXPECT_EQ(again[i].ms, costs[i].ms);
    EXPECT_EQ(again[i].alone_ms, costs[i].alone_ms);
  }
}

TEST(Predict, ScheduleOfARow) {
  EXPECT_EQ(grid(schedule_of(row_of("predict_pipeline", 5, 2))),
            grid(pipeline::make_schedule("1f1b", 2, 3)));
  EXPECT_EQ(grid(schedule_of(row_of("predict_model_parallel", 5, 2))),
            grid(pipeline::make_schedule("naive", 2, 1)));
  EXPECT_EQ(grid(schedule_of(row_of("predict_single", 5, 2))),
            grid(pipeline::make_schedule("naive", 1, 1)));
}

TEST(Predict, ByHandFor1f1b) {
  // Micro-batches of one sample: F 1, first B 2, later B 3, copies 0.5, optimizer 0.25.
  //   device 1: CF0 ends 1.5, F0 2.5, B0 4.5, CF1 5.0, F1 6.0, B1 9.0, O
  //   device 0: F0 1, F1 2, CB0 5.0, B0 7.0, CB1 from 9.0 to 9.5, B1 12.5, O 12.75
  const auto timeline = predict_step(row_of("predict_pipeline", 2, 1), costs_of(1));
  EXPECT_DOUBLE_EQ(timeline.step_ms, 12.75);
  EXPECT_DOUBLE_EQ(predict_step_ms(row_of("predict_pipeline", 2, 1), costs_to_json(costs_of(1))),
                   12.75);
}

TEST(Predict, ACopyEngineHidesTransfers) {
  // CF1 runs beside F0, so F1 starts at 4.5 and B1 ends at 8.5; then CB1, B1 and O.
  Config row = row_of("predict_pipeline", 2, 1);
  row.device = "cuda";
  EXPECT_DOUBLE_EQ(predict_step(row, costs_of(1)).step_ms, 8.5 + 0.5 + 3 + 0.25);
}

TEST(Predict, WhatRunsAloneCostsLess) {
  // One device at a time: every action at its cost alone, half of 25.25, but for 1O, which runs
  // beside 0CB. Both take twice as long until 1O ends after 0.25; 0CB has half of its way left.
  auto costs = costs_of(4);
  for (auto& cost : costs) cost.alone_ms = 0.5 * cost.ms;
  EXPECT_DOUBLE_EQ(predict_step(row_of("predict_model_parallel", 4, 1), costs).step_ms,
                   0.5 * 25.25 + 0.125);
  // Side by side it lies between the two.
  const double together = predict_step(row_of("predict_pipeline", 8, 4), costs).step_ms;
  for (auto& cost : costs) cost.alone_ms = cost.ms;
  const double contended = predict_step(row_of("predict_pipeline", 8, 4), costs).step_ms;
  EXPECT_LT(together, contended);
  EXPECT_GT(together, 0.5 * contended);
}

TEST(Predict, OneMicroBatchIsAFirstBackward) {
  // 0F 4, CF 0.5, 1F 4, 1B 8, CB 0.5, 0B 8, O 0.25
  EXPECT_DOUBLE_EQ(predict_step(row_of("predict_model_parallel", 4, 1), costs_of(4)).step_ms,
                   25.25);
  EXPECT_DOUBLE_EQ(predict_step(row_of("predict_single", 4, 1), costs_of(4)).step_ms, 4 + 8 + 0.25);
}

TEST(Predict, TheRemainderHasItsOwnCosts) {
  // gpipe on one pair of stages would do as well; naive makes the sum plain: every action in turn.
  Config row = row_of("predict_pipeline", 3, 2);
  row.schedule = "naive";
  auto costs = costs_of(2);
  for (const auto& cost : costs_of(1)) costs.push_back(cost);
  // Sizes 2 and 1; each both ways through two stages with two copies; then the optimizer.
  EXPECT_DOUBLE_EQ(predict_step(row, costs).step_ms,
                   (2 * 2 + 2 * 4 + 1.0) + (2 * 1 + 2 * 3 + 1.0) + 0.25);
}

TEST(Predict, AMissingCostIsNamed) {
  const Config row = row_of("predict_pipeline", 4, 2);
  auto costs = costs_of(2);
  std::erase_if(costs, [](const ActionCost& cost) {
    return cost.kind == "copy_gradient" && cost.stage == 0;
  });
  EXPECT_EQ(error_of([&] { predict_step(row, costs); }),
            "no calibrated cost for 0CB0 with 2 samples");
  EXPECT_THAT(error_of([&] { predict_step(row, costs_of(3)); }), HasSubstr("with 2 samples"));
}

TEST(Predict, LaterBackwardsFallBackOnTheFirst) {
  // Calibrated on a row of one micro-batch, which has no later ones.
  auto costs = costs_of(1);
  std::erase_if(costs,
                [](const ActionCost& cost) { return cost.kind == "backward" && !cost.first; });
  EXPECT_DOUBLE_EQ(predict_step(row_of("predict_pipeline", 2, 1), costs).step_ms, 11.75 - 1);
}

TEST(Predict, TwoSplitsReproduceAStraightLine) {
  const Rates rates{.forward = 1.5, .first_backward = 2.5, .backward = 3.5, .constant = 0.7};
  const auto small = costs_to_json(costs_of(2, rates));
  const auto large = costs_to_json(costs_of(12, rates));
  for (const std::int64_t split : {1, 2, 4, 6, 12, 24}) {
    const Config row = row_of("predict_pipeline", 24, split);
    const double expected = predict_step_ms(row, costs_to_json(costs_of(split, rates)));
    EXPECT_NEAR(predict_step_ms_from_two(row, small, large), expected, 1e-9) << split;
    EXPECT_NEAR(predict_step_ms_from_two(row, large, small), expected, 1e-9) << split;
  }
}

TEST(Predict, TwoSplitsReproduceTheLineOfCostsAloneToo) {
  const auto with_alone = [](std::int64_t samples) {
    auto costs = costs_of(samples, {.constant = 0.7});
    for (auto& cost : costs) cost.alone_ms = 0.8 * cost.ms;
    return costs_to_json(costs);
  };
  for (const std::int64_t split : {1, 3, 8, 24}) {
    const Config row = row_of("predict_pipeline", 24, split);
    EXPECT_NEAR(predict_step_ms_from_two(row, with_alone(2), with_alone(12)),
                predict_step_ms(row, with_alone(split)), 1e-9)
        << split;
  }
}

TEST(Predict, TwoSplitsWithARemainder) {
  const Rates rates{.constant = 0.7};
  auto exact = costs_of(5, rates);
  for (const auto& cost : costs_of(4, rates)) exact.push_back(cost);
  const Config row = row_of("predict_pipeline", 24, 5);  // 5, 5, 5, 5, 4
  // The calibrations themselves may have had remainders: only the full size counts.
  auto with_remainder = costs_of(10, rates);
  for (auto cost : costs_of(4, rates)) {
    cost.ms *= 100;
    if (cost.samples != 0) with_remainder.push_back(cost);
  }
  EXPECT_NEAR(predict_step_ms_from_two(row, costs_to_json(costs_of(2, rates)),
                                       costs_to_json(with_remainder)),
              predict_step(row, exact).step_ms, 1e-9);
}

TEST(Predict, ALineNeverFallsBelowZero) {
  // Steep: 1 ms for 4 samples, 100 ms for 8; at one sample the line would be negative.
  std::vector<ActionCost> at_four = costs_of(4);
  std::vector<ActionCost> at_eight = costs_of(8);
  for (auto& cost : at_four) cost.ms = cost.samples == 0 ? 0 : 1;
  for (auto& cost : at_eight) cost.ms = cost.samples == 0 ? 0 : 100;
  EXPECT_EQ(predict_step_ms_from_two(row_of("predict_pipeline", 8, 1), costs_to_json(at_four),
                                     costs_to_json(at_eight)),
            0);
}

const strategies::StrategyRegistration replicated{{.name = "predict_replicated",
                                                   .summary = "",
                                                   .options = {"accumulation_steps"},
                                                   .multi_device = true,
                                                   .dimensions = {"data"},
                                                   .make = {}}};

/// A replica whose forward takes 10, backward 20 (12 to add gradients), update 3, input 1; two
/// buckets, and a link that carries 1 MB in 1 ms without the processor.
nlohmann::json replica_calibration() {
  const std::vector<ActionCost> costs = {{"copy_input", 0, 4, false, 1, 1},
                                         {"forward", 0, 4, false, 10, 9},
                                         {"backward", 0, 4, true, 20, 18},
                                         {"backward", 0, 4, false, 12, 11},
                                         {"optimizer", 0, 0, false, 3, 3}};
  return {
      {"costs", costs_to_json(costs)},
      {"buckets", {{{"bytes", 4'000'000}, {"ready", 0.5}}, {{"bytes", 2'000'000}, {"ready", 1.0}}}},
      {"link",
       {{{"bytes", 1'000'000}, {"ms", 1.0}, {"processor_share", 0.0}},
        {{"bytes", 9'000'000}, {"ms", 9.0}, {"processor_share", 0.0}}}}};
}

TEST(PredictReplicated, WhatIsReadyEarlyHides) {
  const Config row = row_of("predict_replicated", 8, 8);
  // The first bucket travels from 10 to 14 of the pass, the second 2 behind its end.
  EXPECT_NEAR(predict_step_ms(row, replica_calibration()), 1 + 10 + 20 + 2 + 3, 1e-9);
}

TEST(PredictReplicated, EveryReplicaHasItsTransfersBesideItsPasses) {
  const Config row = row_of("predict_replicated", 8, 8);
  const runtime::Timeline timeline = predict_timeline(row, replica_calibration());
  for (const int device : {0, 1}) {
    const runtime::StepBreakdown parts = runtime::breakdown(timeline, device, 1);
    EXPECT_NEAR(parts.compute, 10 + 20, 1e-9);
    EXPECT_NEAR(parts.communication_hidden, 4, 1e-9);
    EXPECT_NEAR(parts.communication_exposed, 2, 1e-9);
    EXPECT_NEAR(parts.input_copy + parts.optimizer, 1 + 3, 1e-9);
    EXPECT_NEAR(parts.other, 0, 1e-9);
  }
}

TEST(PredictReplicated, ARingOfFourTakesItsShareOfTheBytesThreeTimesOver) {
  // 1 ms and 1 ms a MB between two.
  const nlohmann::json two = {{{"bytes", 1'000'000}, {"ms", 2.0}, {"processor_share", 0.5}},
                              {{"bytes", 9'000'000}, {"ms", 10.0}, {"processor_share", 0.25}}};
  const nlohmann::json four = link_of_ring(two, 4);
  EXPECT_NEAR(four[0]["ms"].get<double>(), 3 * 1 + 1.5 * 1, 1e-9);
  EXPECT_NEAR(four[1]["ms"].get<double>(), 3 * 1 + 1.5 * 9, 1e-9);
  EXPECT_EQ(four[1]["processor_share"], 0.25);
  EXPECT_NEAR(link_of_ring(two, 2)[1]["ms"].get<double>(), 10, 1e-9);
}

TEST(CostsAlone, AreThoseOfADeviceThatNobodySlowsDown) {
  const auto alone = costs_from_json(costs_alone(replica_calibration()["costs"]));
  EXPECT_EQ(alone[1].ms, 9);
  EXPECT_EQ(alone[1].alone_ms, 9);
}

TEST(PredictReplicated, OnlyTheLastOfSeveralPassesSends) {
  Config row = row_of("predict_replicated", 8, 8);
  row.accumulation_steps = 2;
  EXPECT_NEAR(predict_step_ms(row, replica_calibration()), 2 * (1 + 10) + 20 + 12 + 2 + 3, 1e-9);
}

TEST(PredictReplicated, ALinkThatTakesTheProcessorCostsWhatItHides) {
  auto calibration = replica_calibration();
  for (auto& measured : calibration["link"]) measured["processor_share"] = 1.0;
  const Config row = row_of("predict_replicated", 8, 8);
  EXPECT_NEAR(predict_step_ms(row, calibration), 1 + 10 + 20 + 4 + 2 + 3, 1e-9);
}

}  // namespace
}  // namespace stratagem::bench
