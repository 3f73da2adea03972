// The step of replicas in one process, by hand.
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/predict/predict.h"
#include "strategies/registry.h"

namespace stratagem::bench::predict_data_parallel_test {
namespace {

STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "predict_data_parallel",
    .options = strategies::option_names({strategies::data_parallel_options}),
    .multi_device = true,
    .dimensions = {"data"},
    .outline =
        [](const strategies::PlanRequest&) {
          return strategies::PlanOutline{.in_one_process = true};
        },
    .one_process = true});

Config row_of(std::int64_t batch) {
  Config row;
  row.strategy = "predict_data_parallel";
  row.devices = 2;
  row.global_batch_size = batch;
  return row;
}

/// Of a segment for parts of `samples`: F 1 a sample, B 2, L 0.5; P 3, RA 4, O 5.
void add_segment(std::vector<ActionCost>& costs, int segment, std::int64_t samples) {
  const auto n = static_cast<double>(samples);
  costs.push_back({"copy_input", segment, samples, false, 0.5 * n});
  costs.push_back({"forward", segment, samples, false, n});
  costs.push_back({"backward", segment, samples, true, 2 * n});
  costs.push_back({"copy_gradient", segment, samples, false, 0.25});
  costs.push_back({"replicate", segment, 0, false, 3});
  costs.push_back({"sum_gradients", segment, 0, false, 4});
  costs.push_back({"optimizer", segment, 0, false, 5});
}

TEST(PredictDataParallel, ByHand) {
  // A batch of 4: the whole comes in 2, then device 1 copies its half in 1 (P ran meanwhile, ending
  // at 3). F from 3 to 5 on device 0, from 4 to 6 on device 1; the gather of a copy of 0.5 for all
  // outputs: 0.25 for the others' half and 0.5 to join them, from 6; loss 1 and its backward 1.5;
  // SG 0.25 on device 1, B 4, RA 4, O 5.
  StageCosts costs{.owners = {0}};
  add_segment(costs.costs, 0, 2);
  costs.costs.push_back({"copy_input", 1, 4, false, 0});
  costs.costs.push_back({"copy_activation", 1, 4, false, 0.5});
  costs.costs.push_back({"forward", 1, 4, false, 1});
  costs.costs.push_back({"backward", 1, 4, true, 1.5});
  const auto timeline = predict_timeline(row_of(4), costs);
  EXPECT_DOUBLE_EQ(timeline.step_ms, 6 + 0.75 + 1 + 1.5 + 0.25 + 4 + 4 + 5);
}

TEST(PredictDataParallel, SharesOfTheUpdate) {
  Config row = row_of(2);
  row.scatter = "host";
  row.loss_on = "replicas";
  row.replicate = "kept";
  StageCosts costs{.owners = {0, 0}};
  for (const int segment : {0, 1}) add_segment(costs.costs, segment, 1);
  // L 0.5 and 0.5 for the targets, F 1 + 1, B 2 + 2; RA 4 + 4, O 5 + 5, and P of the last bucket.
  EXPECT_DOUBLE_EQ(predict_step_ms(row, costs), 1 + 2 + 4 + 8 + 10 + 3);
  row.update = "everywhere";
  costs.owners = {0, 1};
  EXPECT_DOUBLE_EQ(predict_step_ms(row, costs), 1 + 2 + 4 + 4 + 5 + 3);
}

TEST(PredictDataParallel, LacksNothingSilently) {
  StageCosts costs{.owners = {0}};
  EXPECT_THROW(predict_step_ms(row_of(4), costs), std::invalid_argument);
  costs.owners = {};
  EXPECT_THROW(predict_step_ms(row_of(4), costs), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::bench::predict_data_parallel_test
