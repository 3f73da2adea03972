// The task calibrate_stages, by a clock of which every reading is a millisecond behind the one
// before, or on layers that sleep for a known time.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "bench/config/placement.h"
#include "bench/predict/predict.h"
#include "bench/worker/tasks.h"
#include "strategies/schedules/simulate.h"
#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/cpu_devices.h"

namespace stratagem::bench::calibrate_stages_test {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Each thread has its own.
std::chrono::steady_clock::time_point ticking() {
  thread_local std::chrono::steady_clock::time_point now;
  return now += Milliseconds(1);
}

/// No longer than it takes to see every action.
TaskContext quick() {
  TaskContext context;
  context.calibration = {
      .busy = Milliseconds(1), .alone = Milliseconds(1), .groups = Milliseconds(0), .now = ticking};
  return context;
}

/// Those of the row, in which each action must take one tick of the clock.
std::vector<ActionCost> costs_in_ticks(const Config& row) {
  const auto costs = calibrate_stages({.config = row}, quick()).costs;
  for (const ActionCost& cost : costs) {
    EXPECT_DOUBLE_EQ(cost.ms, 1) << cost.kind;
    EXPECT_DOUBLE_EQ(cost.alone_ms, 1) << cost.kind;
  }
  return costs;
}

/// That the row's costs, with every action at 1 ms, predict its schedule's step with such actions.
void expect_unit_step(const Config& row, const std::vector<ActionCost>& costs) {
  const auto step =
      schedules::simulate(plan_of(row).schedule, [](const schedules::Action&) { return 1; });
  EXPECT_GT(step.step_ms, 0);
  EXPECT_DOUBLE_EQ(predict_timeline(row, {.costs = costs}).step_ms, step.step_ms) << row.schedule;
}

/// Whether each action that a launch of the row measures is predicted, by kind, stage and
/// micro-batch. A step that is measured among others may have begun before it counts.
void expect_predicted_actions(const Config& row, const CalibrateStagesResult& found) {
  std::multiset<std::tuple<std::string, int, int>> predicted;
  std::multiset<std::tuple<std::string, int, int>> executed;
  const auto timeline = predict_timeline(row, {.costs = found.costs,
                                               .owners = found.owners,
                                               .groups = found.groups,
                                               .has_buffers = found.has_buffers});
  EXPECT_GT(timeline.step_ms, 0);
  for (const auto& entry : timeline.entries) {
    const auto& [kind, stage, micro_batch] = entry.action;
    predicted.emplace(schedules::name(kind), stage, micro_batch);
  }
  for (const auto& event : measured(row).timeline) {
    executed.emplace(event.kind, event.stage, event.micro_batch);
  }
  EXPECT_FALSE(executed.empty());
  EXPECT_TRUE(std::ranges::includes(predicted, executed)) << row.strategy << ", " << row.schedule;
}

TEST(CalibrateStages, PricesEveryActionOfTheRow) {
  // Micro-batches of 2, 2 and 1: both sizes are priced.
  Config row = small_row("pipeline", "toy");
  row.global_batch_size = 5;
  const auto costs = costs_in_ticks(row);
  std::set<std::int64_t> samples;
  for (const ActionCost& cost : costs) samples.insert(cost.samples);
  EXPECT_EQ(samples, (std::set<std::int64_t>{0, 1, 2}));
  expect_unit_step(row, costs);
  row.schedule = "gpipe";  // the costs are the schedule's neighbours' too
  expect_unit_step(row, costs);
}

/// The calibrated steps have four micro-batches, the row has eight.
TEST(CalibrateStages, TheMemoryOfAFewMicroBatchesPredictsThatOfMany) {
  for (const char* schedule : {"1f1b", "zb_h1", "gpipe"}) {
    SCOPED_TRACE(schedule);
    Config row = small_row("pipeline", "mlp");
    row.global_batch_size = 16;
    row.schedule = std::string(schedule);
    const CalibrateStagesResult found = calibrate_stages({.config = row}, quick());
    const Prediction predicted = predict(row, {.costs = found.costs, .memory = found.memory});
    const MeasureResult launch = measure({.config = row}, {});
    std::int64_t most = 0;
    for (const auto& device : launch.repetitions.at(0).devices) {
      most = std::max(most, device.peak_memory_bytes);
    }
    ASSERT_TRUE(predicted.peak_bytes);
    EXPECT_NEAR(static_cast<double>(*predicted.peak_bytes) / static_cast<double>(most), 1, 0.02);
  }
}

TEST(CalibrateStages, PricesTheNormOfGradientsThatAreClipped) {
  for (const char* strategy : {"pipeline", "data_parallel"}) {
    Config row = small_row(strategy, "toy");
    row.clip_gradients = 1;
    const CalibrateStagesResult found = calibrate_stages({.config = row}, quick());
    expect_predicted_actions(row, found);
    if (row.strategy == "pipeline") expect_unit_step(row, found.costs);
  }
}

using Precision = decltype(Config::mixed_precision);

TEST(CalibrateStages, PricesStagesInMixedPrecision) {
  Config row = small_row("pipeline", "mlp");
  struct Case {
    const char* schedule;
    Precision precision;
  };
  for (const auto& [schedule, precision] : {Case{"1f1b", "bfloat16"}, Case{"1f1b", "float16"},
                                            Case{"zb_h1", "bfloat16"}, Case{"zb_v", "float16"}}) {
    row.schedule = schedule;
    if (row.schedule == "zb_v") row.cut = {"fc3", "fc5", "fc7"};
    row.mixed_precision = precision;
    expect_predicted_actions(row, calibrate_stages({.config = row}, quick()));
  }
}

TEST(CalibrateStages, PricesWhatReplicasOfOneProcessDo) {
  for (const bool changed : {false, true}) {
    Config row = small_row("data_parallel");
    row.global_batch_size = 5;  // parts of 3 and 2
    if (changed) {
      row.loss_on = "replicas";
      row.replicate = "kept";
      row.reduce = "overlapped";
      row.update = "everywhere";
      row.bucket_mb = 1e-6;
    }
    const CalibrateStagesResult found = calibrate_stages({.config = row}, quick());
    for (const ActionCost& cost : found.costs) EXPECT_DOUBLE_EQ(cost.ms, 1) << cost.kind;
    EXPECT_EQ(found.owners,
              changed ? (std::vector<std::int64_t>{0, 1}) : (std::vector<std::int64_t>{0}));
    expect_predicted_actions(row, found);
  }
}

/// While it lives, ReLUs sleep: so long in a forward pass, and twice as long in a backward pass.
class SleepingRelus {
 public:
  static constexpr int forward_ms = 1;

  SleepingRelus()
      : handle_(at::addGlobalCallback(
            at::RecordFunctionCallback(sleep).scopes({at::RecordScope::FUNCTION}))) {}
  ~SleepingRelus() { at::removeCallback(handle_); }
  SleepingRelus(const SleepingRelus&) = delete;
  SleepingRelus& operator=(const SleepingRelus&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> sleep(const at::RecordFunction& call) {
    const std::string_view name = call.name();
    if (name == "aten::relu" || name == "aten::relu_") runtime::sleep_ms(forward_ms);
    if (name == "aten::threshold_backward") runtime::sleep_ms(2 * forward_ms);
    return nullptr;
  }

  at::CallbackHandle handle_;
};

TEST(CalibrateStages, PricesGroupsOfLayersWithoutTheOtherReplicas) {
  const SleepingRelus sleeping;
  for (const Precision precision :
       {Precision("none"), Precision("bfloat16"), Precision("float16")}) {
    Config row = small_row("zero3", "mlp");
    row.cut.clear();
    row.global_batch_size = 10;  // 5 a replica: micro-batches of 2, 2 and 1
    row.mixed_precision = precision;
    const CalibrateStagesResult found = calibrate_stages({.config = row}, quick());
    const StageCosts costs{
        .costs = found.costs,
        .links = {.gather = {{1000, 1.0}, {2000, 2.0}}, .scatter = {{1000, 1.0}, {2000, 2.0}}},
        .groups = found.groups,
        .has_buffers = found.has_buffers,
        .memory = found.memory};
    EXPECT_GT(costs.groups.size(), 2U);
    int relus = 0;
    for (const ActionCost& cost : costs.costs) {
      const bool last = cost.stage + 1 == static_cast<int>(costs.groups.size());
      if (cost.kind != "forward" || last) continue;
      EXPECT_GE(cost.ms, SleepingRelus::forward_ms) << cost.stage;
      ++relus;
    }
    EXPECT_GT(relus, 0);
    // Sleeps are no shorter than asked for; how much longer the rest takes is the machine's.
    constexpr int micro_batches = 3;
    constexpr int relus_of_the_model = 7;
    const double least = micro_batches * relus_of_the_model * 3 * SleepingRelus::forward_ms;
    EXPECT_GT(predict_step_ms(row, costs), least) << precision;
    EXPECT_GT(predict(row, costs).peak_bytes, sum(costs.memory.resting.at(0))) << precision;
    row.prefetch = 0;
    row.reshard_after_forward = false;
    EXPECT_GT(predict_step_ms(row, costs), least) << "the costs are other windows' too";
  }
}

}  // namespace
}  // namespace stratagem::bench::calibrate_stages_test
