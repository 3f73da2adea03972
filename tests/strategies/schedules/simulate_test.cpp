#include "strategies/schedules/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/sharding.h"
#include "tests/strategies/schedule_pictures.h"

namespace stratagem::schedules::simulate_test {
namespace {

/// One column a millisecond.
std::string drawing(const Timeline& timeline, int devices) {
  std::vector<std::vector<std::string>> cells(
      static_cast<std::size_t>(devices),
      std::vector<std::string>(static_cast<std::size_t>(std::lround(timeline.step_ms)), ".."));
  for (const auto& entry : timeline.entries) {
    for (long t = std::lround(entry.start_ms); t < std::lround(entry.end_ms); ++t) {
      cells[static_cast<std::size_t>(entry.device)][static_cast<std::size_t>(t)] =
          to_string(entry.action).substr(1);
    }
  }
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "\n" : " ") + row[i];
  }
  return text + "\n";
}

double step_ms(const std::string& schedule, int micro_batches, const UniformCosts& costs,
               const SimulationOptions& options = {}) {
  const int stages = static_cast<int>(costs.forward_ms.size());
  return simulate(make_schedule(schedule, stages, micro_batches), cost_function(costs), options)
      .step_ms;
}

const TimelineEntry& entry_of(const Timeline& timeline, const std::string& action) {
  for (const auto& entry : timeline.entries) {
    if (to_string(entry.action) == action) return entry;
  }
  throw std::out_of_range(action);
}

TEST(Simulate, DrawsThePictures) {
  for (const SchedulePicture& drawn : schedule_pictures()) {
    const std::vector<double> unit(static_cast<std::size_t>(drawn.stages), 1.0);
    const auto timeline = simulate(make_schedule(drawn.name, drawn.stages, drawn.micro_batches),
                                   cost_function({.forward_ms = unit, .backward_ms = unit}));
    EXPECT_EQ(drawing(timeline, drawn.stages), drawn.picture) << drawn.name;
  }
}

TEST(SteadyStep, LeavesOutTheRampWhereNoDeviceRestsWithinItsPart) {
  const UniformCosts costs{.forward_ms = {1, 1, 1}, .backward_ms = {2, 2, 2}, .input_ms = 0};
  const auto timeline = simulate(make_schedule("zb_h2", 3, 5), cost_function(costs));
  EXPECT_DOUBLE_EQ(timeline.step_ms, 15 + 2);
  EXPECT_DOUBLE_EQ(steady_step_ms(timeline, 3), 15);
  EXPECT_DOUBLE_EQ(mean_step_ms(timeline, 3, 1), 17);
  EXPECT_DOUBLE_EQ(mean_step_ms(timeline, 3, 2), 16);
  EXPECT_DOUBLE_EQ(idle_fraction(timeline, 3), 0);
}

TEST(SteadyStep, IsTheStepWhereTheFirstDeviceBeginsAndEndsIt) {
  const UniformCosts costs{
      .forward_ms = {1, 1}, .backward_ms = {2, 2}, .transfer_ms = 0.5, .input_ms = 0.25};
  const auto timeline = simulate(make_schedule("1f1b", 2, 4), cost_function(costs));
  EXPECT_DOUBLE_EQ(steady_step_ms(timeline, 2), timeline.step_ms);
}

/// Two steps of one schedule as a schedule of twice the micro-batches, each device's list twice.
TEST(SteadyStep, IsWhatASecondStepAdds) {
  for (const char* name : {"gpipe", "1f1b", "zb_h1", "zb_h2", "zb_v"}) {
    const int micro_batches = 5;
    const int each = find_schedule(name).stages_for(1);
    const UniformCosts costs =
        each == 1
            ? UniformCosts{.forward_ms = {2, 1.5, 1}, .backward_ms = {4, 3.5, 2}}
            : UniformCosts{.forward_ms = {1, 1, 0.5, 0.5, 1, 1}, .backward_ms = {2, 2, 1, 1, 2, 2}};
    const Schedule one = find_schedule(name).generate({3, micro_batches, each});
    Schedule two = one;
    two.micro_batches = 2 * micro_batches;
    for (auto& actions : two.actions) {
      const auto first = actions;
      for (Action action : first) {
        action.micro_batch += micro_batches;
        actions.push_back(action);
      }
    }
    const auto timeline = simulate(lower(one), cost_function(costs));
    const double both = simulate(lower(two), cost_function(costs)).step_ms;
    EXPECT_NEAR(both, timeline.step_ms + steady_step_ms(timeline, 3), 1e-9) << name;
  }
}

TEST(Simulate, OneDeviceRunsEverythingInTurn) {
  // 3 x (load 1 + forward 2 + backward 4) + optimizer 5
  EXPECT_DOUBLE_EQ(step_ms("1f1b", 3,
                           {.forward_ms = {2},
                            .backward_ms = {4},
                            .optimizer_ms = 5,
                            .transfer_ms = 100,
                            .input_ms = 1}),
                   26);
}

TEST(Simulate, EqualStagesWithoutTransfers) {
  const UniformCosts costs{.forward_ms = {1, 1, 1}, .backward_ms = {2, 2, 2}};
  EXPECT_DOUBLE_EQ(step_ms("naive", 4, costs), 4 * 3 * 3);
  EXPECT_DOUBLE_EQ(step_ms("gpipe", 4, costs), (4 + 2) * 3);  // (m + p - 1)(F + B)
  EXPECT_DOUBLE_EQ(step_ms("1f1b", 4, costs), (4 + 2) * 3);
}

TEST(Simulate, GpipeAnd1f1bTakeTheSameTime) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const auto count = static_cast<std::size_t>(stages);
      const UniformCosts costs{.forward_ms = std::vector<double>(count, 1),
                               .backward_ms = std::vector<double>(count, 2.5),
                               .optimizer_ms = 0.5};
      EXPECT_NEAR(step_ms("gpipe", micro_batches, costs), step_ms("1f1b", micro_batches, costs),
                  1e-9)
          << stages << " stages, " << micro_batches << " micro-batches";
    }
  }
}

TEST(Simulate, TheSlowStageSetsThePace) {
  // Device 1 works from 1 to 1 + 2 x (3 + 6) without a gap; then 0B1 (2) and the optimizer (1).
  //   0: F0 F1 . . . . . . . . B0 B0 . . . . . . . B1 B1 O
  //   1: .  F0 F0 F0 B0 x6        F1 x3 B1 x6
  const UniformCosts costs{.forward_ms = {1, 3}, .backward_ms = {2, 6}, .optimizer_ms = 1};
  EXPECT_DOUBLE_EQ(step_ms("1f1b", 2, costs), 1 + 18 + 2 + 1);
  const auto timeline = simulate(make_schedule("1f1b", 2, 2), cost_function(costs));
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0B0").start_ms, 10);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1F1").start_ms, 10);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1O").start_ms, 19);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0O").end_ms, 22);
}

TEST(Simulate, TransfersLengthenTheCriticalPath) {
  // One micro-batch: 0F 1, 1CF 0.25, 1F 1, 1B 2, 0CB 0.25, 0B 2.
  const UniformCosts costs{.forward_ms = {1, 1}, .backward_ms = {2, 2}, .transfer_ms = 0.25};
  EXPECT_DOUBLE_EQ(step_ms("naive", 1, costs), 6.5);
  // Device 1 is never idle after its first transfer but copies and computes in turn:
  // 1 + 2 x (0.25 + 1 + 2) + 0.25 + 2.
  EXPECT_DOUBLE_EQ(step_ms("1f1b", 2, costs), 9.75);
}

TEST(Simulate, ACopyStreamHidesTransfers) {
  // As above, but 1CF1 runs while device 1 computes 1F0 and 1B0.
  const UniformCosts costs{.forward_ms = {1, 1}, .backward_ms = {2, 2}, .transfer_ms = 0.25};
  EXPECT_DOUBLE_EQ(step_ms("1f1b", 2, costs, {.separate_copy_stream = true}), 9.5);
  const auto timeline =
      simulate(make_schedule("1f1b", 2, 2), cost_function(costs), {.separate_copy_stream = true});
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1CF1").start_ms, 2);  // when 0F1 has ended
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1B0").start_ms, 2.25);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1F1").start_ms, 4.25);
}

TEST(Simulate, ACopyStreamIsOneQueue) {
  // Three loads of 4 ms one after the other, each forward behind its own.
  const UniformCosts costs{.forward_ms = {1}, .backward_ms = {1}, .input_ms = 4};
  const auto timeline =
      simulate(make_schedule("gpipe", 1, 3), cost_function(costs), {.separate_copy_stream = true});
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0F2").start_ms, 12);
  EXPECT_DOUBLE_EQ(timeline.step_ms, 16);
}

/// Two devices, two micro-batches; forwards and backwards cost one time alone and another while the
/// other device computes.
Timeline contended(Cost forward, Cost backward) {
  return simulate(make_schedule("1f1b", 2, 2), [=](const Action& action) -> Cost {
    if (action.kind == ActionKind::forward) return forward;
    return action.kind == ActionKind::backward ? backward : Cost(0.0);
  });
}

TEST(Simulate, AnActionSlowsDownWhileItsNeighbourComputes) {
  // Alone F 2 and B 4; beside the other device everything takes half as long again.
  //   0: F0 0-2, F1 2-5,                      B0 9-15 (all of it beside 1F1 and 1B1), B1 17-21
  //   1:         F0 2-5, B0 5-9 (alone), F1 9-12, B1 12-17 (3 ms beside 0B0, the rest alone)
  const Timeline timeline = contended({2, 3}, {4, 6});
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0F0").end_ms, 2);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0F1").end_ms, 5);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1F0").end_ms, 5);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1B0").end_ms, 9);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1F1").end_ms, 12);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0B0").end_ms, 15);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1B1").end_ms, 17);
  EXPECT_DOUBLE_EQ(timeline.step_ms, 21);
}

TEST(Simulate, TwoDevicesThatShareEverythingGainNothing) {
  // Half the speed each while both compute: the step is the sum of all work.
  EXPECT_NEAR(contended({2, 4}, {4, 8}).step_ms, 2 * 2 * (2 + 4), 1e-9);
}

TEST(Simulate, ContentionGrowsWithTheNumberOfBusyDevices) {
  // Three devices, forwards of 4 alone and 8 beside both others, so 6 beside one; backwards free.
  // After 0F0 alone (4), 0F1 and 1F0 run side by side (6), then 1F1 and 2F0 do (6), then 2F1 (4).
  const auto cost = [](const Action& action) -> Cost {
    return action.kind == ActionKind::forward ? Cost(4, 8) : Cost(0.0);
  };
  EXPECT_NEAR(simulate(make_schedule("gpipe", 3, 2), cost).step_ms, 4 + 6 + 6 + 4, 1e-9);
}

TEST(Simulate, ADeadlockIsRefused) {
  Schedule schedule = make_schedule("naive", 2, 1);
  std::ranges::reverse(schedule.actions[1]);
  EXPECT_THROW(simulate(schedule, [](const Action&) { return Cost(1); }), std::invalid_argument);
}

TEST(Simulate, EntriesStandByDeviceInTheirOrder) {
  const auto timeline =
      simulate(make_schedule("1f1b", 2, 1),
               cost_function({.forward_ms = {1, 1}, .backward_ms = {1, 1}, .optimizer_ms = 1}));
  std::string order;
  for (const auto& entry : timeline.entries) {
    order += std::to_string(entry.device) + ":" + to_string(entry.action) + " ";
  }
  EXPECT_EQ(order, "0:0L0 0:0F0 0:0CB0 0:0B0 0:0O 1:1L0 1:1CF0 1:1F0 1:1B0 1:1O ");
}

TEST(Simulate, IdleFractionCountsComputationAlone) {
  // A step of 1 + 2 (copy) + 1, of which the second device needs 3: so long is one of many. Two of
  // these 6 are forwards; copies are not work.
  Timeline timeline;
  timeline.step_ms = 4;
  timeline.entries = {{0, {ActionKind::forward, 0, 0}, 0, 1},
                      {1, {ActionKind::copy_activation, 1, 0}, 1, 3},
                      {1, {ActionKind::forward, 1, 0}, 3, 4}};
  EXPECT_DOUBLE_EQ(idle_fraction(timeline, 2), 4.0 / 6);
  EXPECT_DOUBLE_EQ(idle_fraction({}, 2), 0);
}

TEST(LinkModel, LatencyPlusBytesOverBandwidth) {
  const LinkModel link{.latency_ms = 0.5, .gigabytes_per_second = 2};
  EXPECT_DOUBLE_EQ(link.transfer_ms(0), 0.5);
  EXPECT_DOUBLE_EQ(link.transfer_ms(10e6), 5.5);  // 10 MB at 2 GB/s
  EXPECT_DOUBLE_EQ((LinkModel{.latency_ms = 0.5}.transfer_ms(10e6)), 0.5);
}

/// Two groups of one stage, gathered anew for each use, with gathers of 3 ms and scatters of 5,
/// forward passes of 2, backward passes of 4 and updates of 1.
Timeline sharded_step(double processor_share) {
  const Schedule cut = cut_into_groups(make_schedule("naive", 1, 1), {2});
  const Schedule sharded = add_sharding(cut, {.sharded = "parameters"});
  return simulate(sharded, [=](const Action& action) -> Cost {
    Cost cost = 0;
    if (action.kind == ActionKind::forward) cost = 2;
    if (action.kind == ActionKind::backward) cost = 4;
    if (action.kind == ActionKind::optimizer) cost = 1;
    if (action.kind == ActionKind::gather_transfer) cost = 3;
    if (action.kind == ActionKind::scatter_transfer) cost = 5;
    cost.processor_share = is_in_flight(action.kind) ? processor_share : 0;
    return cost;
  });
}

TEST(Simulate, WhatIsInFlightRunsBesideTheDevicesList) {
  const Timeline timeline = sharded_step(/*processor_share=*/0);
  const auto expect = [&](const char* action, double start, double end) {
    EXPECT_DOUBLE_EQ(entry_of(timeline, action).start_ms, start) << action;
    EXPECT_DOUBLE_EQ(entry_of(timeline, action).end_ms, end) << action;
  };
  expect("0AG0", 0, 3);
  expect("0UW0", 0, 3);  // nothing to do before it is there
  expect("0F0", 3, 5);
  expect("1AG0", 3, 6);  // asked for before the pass
  expect("1UW0", 5, 6);  // what is left of it
  expect("1F0", 6, 8);
  expect("0AG1", 8, 11);
  expect("1B0", 8, 12);
  expect("1ST0", 12, 17);
  expect("0UW1", 12, 12);
  expect("0B0", 12, 16);
  expect("0ST0", 17, 22);  // one after the other
  expect("1R", 16, 17);
  expect("1O", 17, 18);
  expect("0R", 18, 22);
  EXPECT_DOUBLE_EQ(timeline.step_ms, 23);
}

TEST(Simulate, ATransferThatTakesTheCoreSlowsThePassThatHidesIt) {
  const Timeline timeline = sharded_step(/*processor_share=*/1);
  // Half of the core each: 2 ms of the pass last 4, and 2 of the transfer's 3 are done then.
  EXPECT_DOUBLE_EQ(entry_of(timeline, "0F0").end_ms, 7);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1AG0").end_ms, 8);
  EXPECT_DOUBLE_EQ(entry_of(timeline, "1F0").start_ms, 8);
}

}  // namespace
}  // namespace stratagem::schedules::simulate_test
