#include "strategies/schedules/collective_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/sharding.h"
#include "tests/strategies/action_letters.h"

namespace stratagem::schedules {
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
  const Schedule schedule = add_clipping(
      add_sharding(cut_into_groups(make_schedule("naive", 1, 1), {1}),
                   {.sharded = Sharded::parameters, .copies = true, .with_buffers = true}),
      /*across_ranks=*/true);
  EXPECT_THAT(collectives_of(schedule, 0),
              ElementsAre(Collective{RankGroup::replicas, {ActionKind::broadcast, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::unshard, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::unshard_wait, 0, 0}},
                          Collective{RankGroup::tensor, {F, 0, 0}},
                          Collective{RankGroup::tensor, {B, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::reduce_scatter, 0, 0}},
                          Collective{RankGroup::shards, {ActionKind::gradient_wait, 0, 0}},
                          Collective{RankGroup::copies, {ActionKind::reduce_copies, 0, 0}},
                          Collective{RankGroup::copies, {ActionKind::copies_wait, 0, 0}},
                          Collective{RankGroup::norm, {ActionKind::norm_sum, 0, 0}}));
}

TEST(CollectiveCalls, OfEverySchedulesAreWholeAndAlikeForTheSameOptions) {
  for (const std::string& name : schedule_names()) {
    for (const Sharded level : {Sharded::optimizer, Sharded::gradients, Sharded::parameters}) {
      const Sharding sharding{.sharded = level, .copies = true, .with_buffers = true};
      const Schedule schedule = with_everything(name, sharding);
      for (int device = 0; device < schedule.devices(); ++device) {
        SCOPED_TRACE(testing::Message() << name << " on " << device);
        const CallLists lists = lists_of(schedule, device);
        const CallLists again = lists_of(with_everything(name, sharding), device);
        EXPECT_EQ(digests_of(lists), digests_of(again));
        EXPECT_EQ(first_difference({lists, again}), "");
        std::size_t listed = 0;
        for (const auto& [group, list] : lists) listed += list.calls.size();
        const auto& actions = schedule.actions[static_cast<std::size_t>(device)];
        EXPECT_EQ(listed, std::ranges::count_if(actions, [](const Action& action) {
                    return is_collective(action.kind) || is_pass(action.kind);
                  }));
      }
    }
  }
}

TEST(CollectiveCalls, OfAnotherWindowHaveOtherDigests) {
  const auto lists = [](int prefetch) {
    return lists_of(with_everything("1f1b", {.sharded = Sharded::parameters, .prefetch = prefetch}),
                    0);
  };
  EXPECT_NE(digests_of(lists(1)), digests_of(lists(2)));
  EXPECT_NE(first_difference({lists(1), lists(2)}), "");
}

TEST(CollectiveCalls, TheFirstThatDifferIsNamedWithItsRanks) {
  const CallLists first = {{"data (ranks 0, 1)", {.ranks = {0, 1}, .calls = {"a", "b", "c"}}}};
  const auto with = [](std::vector<std::string> calls) {
    return CallLists{{"data (ranks 0, 1)", {.ranks = {0, 1}, .calls = std::move(calls)}}};
  };
  const std::string rest = "; its ranks are to run the same strategy with the same options";
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
}  // namespace stratagem::schedules
