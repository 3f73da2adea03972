// What a plan has of what its request asks for. That strategies run their plans is asked in
// tests/bench/worker/combinations_test.cpp.
#include "strategies/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"

namespace stratagem::strategies::plan_test {
namespace {

using schedules::ActionKind;
using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

std::set<ActionKind> kinds_of(const schedules::Schedule& schedule) {
  std::set<ActionKind> kinds;
  for (const auto& actions : schedule.actions) {
    for (const schedules::Action& action : actions) kinds.insert(action.kind);
  }
  return kinds;
}

constexpr auto by_size = MicroBatchOption::split_size;
constexpr auto by_count = MicroBatchOption::accumulation_steps;

TEST(Plan, OfOneDeviceIsTheSchedule) {
  const StepPlan plan = plan_of({.samples = 5}, {});
  EXPECT_EQ(grid(plan.schedule), grid(schedules::make_schedule("naive", 1, 1)));
  EXPECT_EQ(grid(plan.of_stages), grid(plan.schedule));
  EXPECT_EQ(grid(plan.evaluation), grid(schedules::forward_only(plan.schedule)));
  EXPECT_EQ(plan.partition, (std::vector<schedules::Slice>{{.count = 5}}));
  EXPECT_EQ(plan.ideal_bubble, 0);
}

TEST(Plan, StagesHaveTheMicroBatchesOfTheSplitSizeOrTheirNumber) {
  PlanRequest request{.options = {.split_size = 2, .accumulation_steps = 4},
                      .arrangement = {.devices = 2},
                      .samples = 5};
  EXPECT_EQ(grid(plan_of(request, {.schedule = "gpipe", .cut_by = by_size}).schedule),
            grid(schedules::make_schedule("gpipe", 2, 3)));
  EXPECT_EQ(grid(plan_of(request, {.schedule = "gpipe", .cut_by = by_count}).schedule),
            grid(schedules::make_schedule("gpipe", 2, 4)));
  EXPECT_EQ(plan_of(request, {.schedule = "gpipe"}).schedule.micro_batches, 1);
  request.options.virtual_stages = 3;
  EXPECT_EQ(stages_of(request, {.schedule = "interleaved_1f1b"}), 6);
  EXPECT_EQ(stages_of(request, {.schedule = "zb_v"}), 4);
}

TEST(Plan, ASearchHasTheTimesAndTheLimitOfTheOptions) {
  PlanRequest request{
      .options = {.split_size = 1, .pass_times = "2+2+1+0.5", .live_micro_batches = 3},
      .arrangement = {.devices = 4},
      .samples = 12};
  const PlanOutline outline{.schedule = "zb_auto", .cut_by = by_size};
  EXPECT_EQ(grid(plan_of(request, outline).schedule),
            grid(schedules::make_schedule("zb_auto", {4, 12, 1, {2, 2, 1, 0.5}, 3})));
  request.options.pass_times = "2,2,1,0.5";
  EXPECT_THROW(plan_of(request, outline), std::invalid_argument);
}

TEST(Plan, AReplicaMayHaveAMicroBatchLess) {
  PlanRequest request{.options = {.split_size = 2}, .arrangement = {.replicas = 2}, .samples = 5};
  const PlanOutline outline{.cut_by = by_size};
  EXPECT_EQ(plan_of(request, outline).schedule.micro_batches, 2);
  request.replica = 1;
  EXPECT_EQ(plan_of(request, outline).schedule.micro_batches, 1);
  request.options.shard = "gradients";  // exchanged in each micro-batch
  EXPECT_EQ(plan_of(request, outline).schedule.micro_batches, 2);
}

TEST(Plan, ReplicasSumGradientsAndTakeOverBuffers) {
  PlanRequest request{.arrangement = {.replicas = 2}, .samples = 4};
  EXPECT_THAT(kinds_of(plan_of(request, {}).schedule), Contains(ActionKind::all_reduce_wait));
  EXPECT_THAT(kinds_of(plan_of(request, {}).schedule), Not(Contains(ActionKind::broadcast)));
  request.parts.has_buffers = true;
  const StepPlan plan = plan_of(request, {});
  EXPECT_THAT(kinds_of(plan.schedule), Contains(ActionKind::broadcast));
  EXPECT_THAT(kinds_of(plan.evaluation),
              ElementsAre(ActionKind::forward, ActionKind::copy_input, ActionKind::broadcast));
}

TEST(Plan, ShardedStateIsGatheredAndScatteredByGroup) {
  PlanRequest request{.options = {.shard = "parameters"},
                      .arrangement = {.replicas = 2},
                      .parts = {.groups_of_stage = {3}, .empty_groups = {1}},
                      .samples = 4};
  const StepPlan plan = plan_of(request, {});
  EXPECT_EQ(plan.of_stages.stages(), 1);
  EXPECT_EQ(plan.schedule.stages(), 3);
  EXPECT_THAT(kinds_of(plan.schedule),
              IsSupersetOf({ActionKind::unshard, ActionKind::reshard, ActionKind::reduce_scatter}));
  EXPECT_THAT(kinds_of(plan.evaluation), Contains(ActionKind::unshard));
  request.options.shard = "none";
  EXPECT_EQ(plan_of(request, {}).schedule.stages(), 3) << "replicas sum each group's gradients";
  request.arrangement.replicas = 1;
  EXPECT_EQ(plan_of(request, {}).schedule.stages(), 1);
  request.mixed_precision = true;
  EXPECT_EQ(plan_of(request, {}).schedule.stages(), 3);
}

TEST(Plan, TheNormIsSummedOverTheRanksThatHavePartsOfIt) {
  const auto kinds = [](const Arrangement& arrangement, schedules::Sharded shard) {
    return kinds_of(plan_of({.options = {.shard = shard},
                             .arrangement = arrangement,
                             .needs_norm = true,
                             .samples = 4},
                            {})
                        .schedule);
  };
  EXPECT_THAT(kinds({}, "none"), Contains(ActionKind::gradient_norm));
  EXPECT_THAT(kinds({}, "none"), Not(Contains(ActionKind::norm_sum)));
  EXPECT_THAT(kinds({.replicas = 2}, "none"), Not(Contains(ActionKind::norm_sum)));
  EXPECT_THAT(kinds({.replicas = 2}, "optimizer"), Contains(ActionKind::norm_sum));
  EXPECT_THAT(kinds({.devices = 2}, "none"), Not(Contains(ActionKind::norm_sum)));
  EXPECT_THAT(kinds({.devices = 2, .ranks = 2}, "none"), Contains(ActionKind::norm_sum));
  EXPECT_THAT(kinds({.tensor_ranks = 2}, "none"), Contains(ActionKind::norm_sum));
}

TEST(Plan, PartialGradientsAreSummedBeforeTheirNorm) {
  const StepPlan plan = plan_of({.arrangement = {.tensor_ranks = 2}, .needs_norm = true},
                                {.has_partial_gradients = true});
  const auto& actions = plan.schedule.actions.front();
  const auto at = [&](ActionKind kind) {
    return std::ranges::find(actions, kind, &schedules::Action::kind);
  };
  EXPECT_LT(at(ActionKind::reduce_gradients), at(ActionKind::gradient_norm));
  EXPECT_LT(at(ActionKind::gradient_norm), at(ActionKind::optimizer));
}

TEST(Plan, ReplicasInOneProcessHaveAScheduleOfTheirOwn) {
  PlanRequest request{.arrangement = {.replicas = 2}, .samples = 3};
  const StepPlan plan = plan_of(request, {.in_one_process = true});
  EXPECT_EQ(plan.partition.size(), 2U);
  EXPECT_THAT(kinds_of(plan.schedule), IsSupersetOf({ActionKind::replicate, ActionKind::gather}));
  EXPECT_EQ(stages_of(request, {.in_one_process = true}), 1);
  request.needs_norm = true;
  EXPECT_THAT(kinds_of(plan_of(request, {.in_one_process = true}).schedule),
              Contains(ActionKind::gradient_norm));
}

}  // namespace
}  // namespace stratagem::strategies::plan_test
