#include "strategies/schedules/recomputation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/sharding.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::schedules::recomputation_test {
namespace {

Schedule one_device(int micro_batches, int groups) {
  return cut_into_groups(make_schedule("naive", 1, micro_batches), {groups});
}

TEST(Recomputation, RepeatsEachForwardPassButTheOneJustBefore) {
  EXPECT_EQ(grid(add_recomputation(one_device(1, 3))),
            "device 0 | 0L0 0F0 1F0 2L0 2F0 2B0 1C0 1B0 0C0 0B0 0O 1O 2O\n");
}

TEST(Recomputation, OverlapsTheWaitForAGradient) {
  const Schedule recomputed = add_recomputation(make_schedule("gpipe", 2, 2));
  EXPECT_EQ(grid(recomputed),
            "device 0 | 0L0 0F0 0L1 0F1 0CB1 0B1 0C0 0CB0 0B0 0O\n"
            "device 1 | 1L0 1CF0 1F0 1L1 1CF1 1F1 1B1 1C0 1B0 1O\n");
}

TEST(Recomputation, WaitsForTheCopyOfTheOutputThatItReplaces) {
  using enum ActionKind;
  const Schedule one_process = add_recomputation(make_schedule("1f1b", 2, 4));
  EXPECT_EQ(predecessors(one_process, {recompute, 0, 1}),
            (std::vector<Action>{{forward, 0, 1}, {copy_activation, 1, 1}}));
  EXPECT_EQ(predecessors(one_process, {recompute, 1, 1}), (std::vector<Action>{{forward, 1, 1}}));
  const Schedule two_ranks = add_recomputation(make_schedule("1f1b", 2, 4, /*ranks=*/2));
  EXPECT_EQ(predecessors(two_ranks, {recompute, 0, 1}), (std::vector<Action>{{forward, 0, 1}}));
  const Schedule groups = add_recomputation(one_device(1, 2));
  EXPECT_EQ(predecessors(groups, {recompute, 0, 0}), (std::vector<Action>{{forward, 0, 0}}));
}

TEST(Recomputation, FindsShardedParametersGathered) {
  const Sharding sharding{.sharded = "parameters"};
  EXPECT_EQ(grid(add_recomputation(add_sharding(one_device(1, 2), sharding))),
            "device 0 | 0L0 0U0 0UW0 1U0 0F0 0X0 1L0 1UW0 1F0 0U1 1B0 1X1 1RS0 "
            "0UW1 0C0 0B0 0X1 0RS0 1R 1O 0R 0O\n");
}

/// Before each backward pass its forward pass is the last one on the device, or is repeated.
void expect_activations_at_each_backward_pass(const Schedule& schedule) {
  for (const auto& actions : schedule.actions) {
    std::optional<Action> made;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::forward || action.kind == ActionKind::recompute) {
        made = action;
      }
      if (!is_backward(action.kind)) continue;
      ASSERT_TRUE(made.has_value()) << to_string(action);
      EXPECT_EQ(made->stage, action.stage) << to_string(action) << "\n" << grid(schedule);
      EXPECT_EQ(made->micro_batch, action.micro_batch) << to_string(action) << "\n"
                                                       << grid(schedule);
      made.reset();
    }
  }
}

bool every_backward_pass_follows_its_own(const Schedule& schedule) {
  for (const auto& actions : schedule.actions) {
    std::optional<Action> last;
    for (const Action& action : actions) {
      const Action forward{ActionKind::forward, action.stage, action.micro_batch};
      if (is_backward(action.kind) && last != forward) return false;
      if (is_pass(action.kind)) last = action;
    }
  }
  return true;
}

TEST(Recomputation, IsValidInEverySchedule) {
  for (const std::string& name : schedule_names()) {
    for (const int devices : {1, 2, 4}) {
      for (const int ranks : {1, devices}) {
        SCOPED_TRACE(testing::Message() << name << " on " << devices << ", ranks " << ranks);
        const Schedule lowered = make_schedule(name, devices, 8, ranks);
        const Schedule recomputed = add_recomputation(lowered);
        validate(recomputed);
        expect_activations_at_each_backward_pass(recomputed);
        EXPECT_EQ(recomputed_passes(recomputed).empty(),
                  every_backward_pass_follows_its_own(lowered));
      }
    }
  }
}

// The first of two groups is repeated, once in each of four micro-batches.
TEST(Recomputation, IsSimulatedLikeAnyPass) {
  const auto cost = [](const Action& action) {
    return Cost(action.kind == ActionKind::forward || action.kind == ActionKind::recompute ? 1
                : action.kind == ActionKind::backward                                      ? 2
                                                                                           : 0);
  };
  EXPECT_EQ(simulate(one_device(4, 2), cost).step_ms, 24);
  EXPECT_EQ(simulate(add_recomputation(one_device(4, 2)), cost).step_ms, 28);
}

}  // namespace
}  // namespace stratagem::schedules::recomputation_test
