#include "strategies/schedules/collective_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "strategies/schedules/executor.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/sharding.h"
#include "tests/strategies/action_letters.h"
#include "tests/strategies/action_log.h"
#include "tests/strategies/cpu_devices.h"

namespace stratagem::schedules::collective_calls_test {
namespace {

using strategies::CallLists;
using ::testing::ElementsAre;

Schedule with_everything(const std::string& name, const Sharding& sharding) {
  const int each = find_schedule(name).stages_for(2);
  const std::vector<int> groups(static_cast<std::size_t>(2 * each), 2);
  const Schedule cut = cut_into_groups(make_schedule(name, {2, 4, each}), groups);
  return add_clipping(add_gradient_reduction(add_sharding(cut, sharding)), /*across_ranks=*/true);
}

CallLists lists_of(const Schedule& schedule, int device) {
  CallLists lists;
  for (const auto& [group, action] : collectives_of(schedule, device)) {
    strategies::GroupCalls& list = lists[std::to_string(static_cast<int>(group))];
    list.ranks = {0, 1};
    list.calls.push_back(to_string(action));
  }
  return lists;
}

TEST(CollectiveCalls, BelongToAGroupOfRanksAndStandInTheirOrder) {
  const Schedule schedule =
      add_clipping(add_sharding(cut_into_groups(make_schedule("naive", 1, 1), {1}),
                                {.sharded = "parameters", .copies = true, .with_buffers = true}),
                   /*across_ranks=*/true);
  EXPECT_THAT(collectives_of(schedule, 0),
              ElementsAre(Collective{RankGroup::replicas, {ActionKind::broadcast, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::unshard, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::unshard_wait, 0, 0}},
                          Collective{RankGroup::tensor, {F, 0, 0}},
                          Collective{RankGroup::tensor, {B, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::reduce_scatter, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::gradient_wait, 0, 0}},
                          Collective{RankGroup::copies, {ActionKind::all_reduce_start, 0, 0}},
                          Collective{RankGroup::copies, {ActionKind::all_reduce_wait, 0, 0}},
                          Collective{RankGroup::norm, {ActionKind::norm_sum, 0, 0}}));
}

/// What a device of an executed schedule did between ranks, in the order in which it was done.
std::vector<Collective> executed_by(const Schedule& schedule, int device) {
  static const std::map<ActionKind, RankGroup> group_of = {
      {ActionKind::broadcast, RankGroup::replicas},
      {ActionKind::unshard, RankGroup::shards},
      {ActionKind::unshard_wait, RankGroup::shards},
      {ActionKind::reduce_scatter, RankGroup::shards},
      {ActionKind::gradient_wait, RankGroup::shards},
      {ActionKind::all_reduce_start, RankGroup::copies},
      {ActionKind::all_reduce_wait, RankGroup::copies},
      {ActionKind::forward, RankGroup::tensor},
      {ActionKind::backward, RankGroup::tensor},
      {ActionKind::backward_input, RankGroup::tensor},
      {ActionKind::backward_weight, RankGroup::tensor},
      {ActionKind::reduce_gradients, RankGroup::tensor},
      {ActionKind::norm_sum, RankGroup::norm}};
  Log log;
  runtime::CpuDevices devices(schedule.devices());
  execute(schedule, devices.all, [&](const Action& action) { log.perform(action); });
  runtime::synchronize_all(devices.all, runtime::ample);
  std::vector<Collective> found;
  for (const Log::Entry& entry : log.entries()) {
    const int owner = schedule.device_of_stage.at(static_cast<std::size_t>(entry.action.stage));
    const auto group = group_of.find(entry.action.kind);
    if (owner == device && group != group_of.end()) found.push_back({group->second, entry.action});
  }
  return found;
}

TEST(CollectiveCalls, OfEveryScheduleAreThoseThatItsExecutionMakesInTheirOrder) {
  for (const std::string& name : schedule_names()) {
    for (const Sharded level :
         {Sharded("optimizer"), Sharded("gradients"), Sharded("parameters")}) {
      const Schedule schedule =
          with_everything(name, {.sharded = level, .copies = true, .with_buffers = true});
      for (int device = 0; device < schedule.devices(); ++device) {
        SCOPED_TRACE(testing::Message() << name << " on " << device);
        EXPECT_EQ(collectives_of(schedule, device), executed_by(schedule, device));
      }
    }
  }
}

TEST(CollectiveCalls, OfEveryScheduleAreAsManyAsItsGroupsAndMicroBatchesMake) {
  constexpr int micro_batches = 4;
  for (const std::string& name : schedule_names()) {
    const int groups = 2 * find_schedule(name).stages_for(2);  // of a device
    for (const Sharded level : {Sharded("optimizer"), Sharded("gradients")}) {
      const Schedule schedule =
          with_everything(name, {.sharded = level, .copies = true, .with_buffers = true});
      // A group is gathered once; its gradients are scattered once, or once a micro-batch. Ranks
      // that share layers meet in each pass, and before each scatter.
      const int scatters = groups * (level == "gradients" ? micro_batches : 1);
      const int passes = groups * micro_batches * (schedule.split_backward ? 3 : 2);
      for (int device = 0; device < schedule.devices(); ++device) {
        SCOPED_TRACE(testing::Message() << name << " on " << device);
        std::map<RankGroup, int> calls;
        for (const Collective& call : collectives_of(schedule, device)) ++calls[call.group];
        EXPECT_EQ(calls[RankGroup::replicas], 1);
        EXPECT_EQ(calls[RankGroup::shards], 2 * (groups + scatters)) << "with their waits";
        EXPECT_EQ(calls[RankGroup::copies], 2 * groups) << "with their waits";
        EXPECT_EQ(calls[RankGroup::tensor], passes + scatters);
        EXPECT_EQ(calls[RankGroup::norm], device == schedule.device_of_stage.front() ? 1 : 0)
            << "one a rank";
      }
    }
  }
}

TEST(CollectiveCalls, DigestsTellOrderAndNamesApart) {
  const auto digest = [](std::vector<std::string> calls) {
    return digests_of({{"data", {.ranks = {0, 1}, .calls = std::move(calls)}}});
  };
  EXPECT_EQ(digest({"a", "b"}), digest({"a", "b"}));
  EXPECT_EQ(first_difference({digest({"a", "b"}), digest({"a", "b"})}), "");
  EXPECT_NE(digest({"a", "b"}), digest({"b", "a"}));
  EXPECT_NE(digest({"a", "b"}), digest({"a"}));
}

TEST(CollectiveCalls, OfAnotherWindowHaveOtherDigests) {
  const auto lists = [](int prefetch) {
    return lists_of(with_everything("1f1b", {.sharded = "parameters", .prefetch = prefetch}), 0);
  };
  EXPECT_NE(digests_of(lists(1)), digests_of(lists(2)));
  EXPECT_NE(first_difference({lists(1), lists(2)}), "");
}

TEST(CollectiveCalls, TheFirstThatDifferIsNamedWithItsRanks) {
  const CallLists first = {{"data (ranks 0, 1)", {.ranks = {0, 1}, .calls = {"a", "b", "c"}}}};
  const auto with = [](std::vector<std::string> calls) {
    return CallLists{{"data (ranks 0, 1)", {.ranks = {0, 1}, .calls = std::move(calls)}}};
  };
  const std::string rest = "; its ranks must run the same strategy with the same options";
  EXPECT_EQ(first_difference({first, first}), "");
  EXPECT_EQ(first_difference({first, with({"a", "c", "b"})}),
            "rank 0: call 2 in group data (ranks 0, 1) is b; that of rank 1 is c" + rest);
  EXPECT_EQ(first_difference({first, with({"a", "b"})}),
            "rank 0: call 3 in group data (ranks 0, 1) is c; that of rank 1 is missing" + rest);
  EXPECT_EQ(first_difference({first, {}}),
            "rank 0: call 1 in group data (ranks 0, 1) is a; that of rank 1 is missing" + rest);
  EXPECT_EQ(first_difference({{}, first}),
            "rank 1: call 1 in group data (ranks 0, 1) is a; that of rank 0 is missing" + rest);
}

TEST(CollectiveCalls, OfOtherGroupsAreNotCompared) {
  const CallLists first = {{"shards (ranks 0)", {.ranks = {0}, .calls = {"a"}}}};
  const CallLists second = {{"shards (ranks 1)", {.ranks = {1}, .calls = {"b"}}}};
  EXPECT_EQ(first_difference({first, second}), "");
}

}  // namespace
}  // namespace stratagem::schedules::collective_calls_test
