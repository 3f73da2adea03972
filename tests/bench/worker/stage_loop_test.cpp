// Costs of stages whose layers take known times by a clock of their own, and what they predict.
#include "bench/worker/stage_loop.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "bench/predict/predict.h"
#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/cpu_devices.h"

namespace stratagem::bench::stage_loop_test {
namespace {

using Clock = StageLoop::Clock;

constexpr std::int64_t features = 10;  // of the model "toy", which gives data and loss

/// Stands still unless a layer lets time pass.
struct FakeClock {
  void pass(double ms) {
    const std::chrono::duration<double, std::milli> passed(slowdown * ms);
    now += std::chrono::duration_cast<Clock::duration>(passed);
  }

  Clock::time_point now;
  double slowdown = 1;
  int in_flight = 0;  // micro-batches between their forward and their backward pass
  int most_in_flight = 0;
};

struct LayerTimes {
  double forward = 0;
  double first_forward = 0;   // which prepares its parameters anew
  double first_backward = 0;  // which stores its gradient
  double backward = 0;        // which adds to it
};

/// Multiplies by a parameter, and takes known times.
class TimedLayer : public models::Layer {
 public:
  TimedLayer(FakeClock& clock, const LayerTimes& times)
      : Layer("timed"),
        clock_(clock),
        times_(times),
        weight_(register_parameter("weight", {features}, models::InitialValues::constant(1))) {}

  at::Tensor forward(const at::Tensor& input) override {
    clock_.pass(weight_.grad().defined() ? times_.forward : times_.first_forward);
    clock_.most_in_flight = std::max(clock_.most_in_flight, ++clock_.in_flight);
    at::Tensor output = input * weight_;
    output.register_hook([this](const at::Tensor&) {
      --clock_.in_flight;
      clock_.pass(weight_.grad().defined() ? times_.backward : times_.first_backward);
    });
    return output;
  }

  models::Shape output_shape(const models::Shape& input) const override { return input; }

 private:
  FakeClock& clock_;
  LayerTimes times_;
  at::Tensor weight_;
};

models::WorkloadOptions toy() {
  return {.model = "toy", .batch = 4, .optimizer = {}, .classes = features};
}

std::vector<schedules::Action> one_after_the_other() {
  using schedules::ActionKind;
  return {{ActionKind::forward, 0, 0},
          {ActionKind::backward, 0, 0},
          {ActionKind::forward, 0, 1},
          {ActionKind::backward, 0, 1}};
}

/// The costs of one of two stages, whose layer takes these times beside others and half of them
/// alone. Micro-batches of 2 samples, two a step.
std::vector<ActionCost> calibrated(FakeClock& clock, std::vector<schedules::Action> passes,
                                   int stage, const LayerTimes& times) {
  const models::Workload workload(toy());
  runtime::CpuDevices devices(1);
  const stages::Stage::Position position{stage == 0, stage == 1};
  models::LayerList layers;
  layers.push_back(std::make_unique<TimedLayer>(clock, times));
  StageLoop loop(workload, devices[0],
                 std::make_unique<stages::Stage>(workload, std::move(layers), position,
                                                 devices[0].description(), 1),
                 position, {2, features}, /*samples=*/2, std::move(passes),
                 [&] { return clock.now; });
  for (const bool alone : {false, true}) {
    clock.slowdown = alone ? 0.5 : 1;
    if (alone) {
      loop.enqueue_alone(/*keep=*/true);
    } else {
      loop.enqueue(std::make_shared<MeasurementBarrier>(1, runtime::ample),
                   std::chrono::milliseconds(100));
    }
    devices[0].synchronize(runtime::ample);
  }
  std::vector<ActionCost> costs;
  loop.add_costs(stage, costs);
  return costs;
}

std::vector<ActionCost> calibrated(int stage, const LayerTimes& times) {
  FakeClock clock;
  return calibrated(clock, one_after_the_other(), stage, times);
}

const ActionCost& cost_of(const std::vector<ActionCost>& costs, const std::string& kind,
                          bool first = false) {
  for (const ActionCost& cost : costs) {
    if (cost.kind == kind && cost.first == first) return cost;
  }
  throw std::invalid_argument("no cost for " + kind);
}

TEST(StageLoop, FindsWhatEachActionTakesBesideOthersAndAlone) {
  const auto costs =
      calibrated(0, {.forward = 4, .first_forward = 6, .first_backward = 8, .backward = 10});
  for (const ActionCost& cost : costs) EXPECT_EQ(cost.stage, 0);
  const auto expect_ms = [](const ActionCost& cost, double ms) {
    EXPECT_EQ(cost.samples, 2) << cost.kind;
    EXPECT_DOUBLE_EQ(cost.ms, ms) << cost.kind;
    EXPECT_DOUBLE_EQ(cost.alone_ms, 0.5 * ms) << cost.kind;
    EXPECT_DOUBLE_EQ(cost.spread.high, 1) << cost.kind;
  };
  expect_ms(cost_of(costs, "forward", /*first=*/true), 6);
  expect_ms(cost_of(costs, "forward", /*first=*/false), 4);
  expect_ms(cost_of(costs, "backward", /*first=*/true), 8);
  expect_ms(cost_of(costs, "backward", /*first=*/false), 10);
  expect_ms(cost_of(costs, "copy_input"), 0);
  expect_ms(cost_of(costs, "copy_gradient"), 0);
  EXPECT_EQ(cost_of(costs, "optimizer").samples, 0);
  EXPECT_EQ(cost_of(costs, "optimizer").ms, 0);
}

TEST(StageLoop, HasTheRowsMicroBatchesInFlight) {
  using schedules::ActionKind;
  FakeClock clock;
  calibrated(clock, one_after_the_other(), 0, {.forward = 1, .backward = 1});
  EXPECT_EQ(clock.most_in_flight, 1);
  calibrated(clock,
             {{ActionKind::forward, 0, 0},
              {ActionKind::forward, 0, 1},
              {ActionKind::backward, 0, 0},
              {ActionKind::backward, 0, 1}},
             0, {.forward = 1, .backward = 1});
  EXPECT_EQ(clock.most_in_flight, 2);
}

TEST(StageLoop, ItsCostsPredictAPipelineByHand) {
  std::vector<ActionCost> costs;
  for (const int stage : {0, 1}) {
    for (ActionCost cost : calibrated(
             stage, {.forward = 4, .first_forward = 6, .first_backward = 8, .backward = 10})) {
      cost.alone_ms = cost.ms;  // nobody slows the other down
      costs.push_back(cost);
    }
  }
  Config row = small_row("pipeline");
  row.schedule = "1f1b";
  row.global_batch_size = 4;
  // device 1: F0 6 to 12, B0 to 20, F1 to 24, B1 to 34
  // device 0: F0 0 to 6, F1 to 10, B0 20 to 28, B1 34 to 44
  EXPECT_DOUBLE_EQ(predict_timeline(row, {.costs = costs}).step_ms, 44);
}

}  // namespace
}  // namespace stratagem::bench::stage_loop_test
