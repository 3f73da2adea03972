#include "strategies/schedules/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "tests/strategies/action_letters.h"

namespace stratagem::schedules::sharding_test {
namespace {

using ::testing::HasSubstr;

int count(const Schedule& schedule, ActionKind kind, int stage = -1) {
  int found = 0;
  for (const auto& actions : schedule.actions) {
    found += static_cast<int>(std::ranges::count_if(actions, [&](const Action& action) {
      return action.kind == kind && (stage < 0 || action.stage == stage);
    }));
  }
  return found;
}

Schedule one_device(int micro_batches, int groups, const Sharding& sharding) {
  return add_sharding(cut_into_groups(make_schedule("naive", 1, micro_batches), {groups}),
                      sharding);
}

TEST(CutIntoGroups, RunsThemForwardsAndBackInThePlaceOfTheirStage) {
  const Schedule cut = cut_into_groups(make_schedule("naive", 1, 1), {3});
  EXPECT_EQ(grid(cut), "device 0 | 0L0 0F0 1F0 2L0 2F0 2B0 1B0 0B0 0O 1O 2O\n");
  validate(cut);
}

TEST(Sharding, OfParametersGathersOneAheadAndFreesBehind) {
  EXPECT_EQ(grid(one_device(1, 3, {.sharded = "parameters"})),
            "device 0 | 0L0 0U0 0UW0 1U0 0F0 0X0 1UW0 2U0 1F0 1X0 2L0 2UW0 2F0 "
            "1U1 2B0 2X1 2RS0 1UW1 0U1 1B0 1X1 1RS0 2R 2O 0UW1 0B0 0X1 0RS0 1R 1O 0R 0O\n");
}

TEST(Sharding, WithoutReshardingGathersOnceAStep) {
  EXPECT_EQ(grid(one_device(1, 2, {.sharded = "parameters", .reshard_after_forward = false})),
            "device 0 | 0L0 0U0 0UW0 1U0 0F0 1L0 1UW0 1F0 "
            "1B0 1X1 1RS0 0B0 0X1 0RS0 1R 1O 0R 0O\n");
}

TEST(Sharding, OfTheOptimizerScattersWhatAllMicroBatchesHaveAdded) {
  EXPECT_EQ(grid(one_device(2, 1, {.sharded = "optimizer"})),
            "device 0 | 0L0 0U0 0UW0 0F0 0B0 0L1 0F1 0B1 0RS1 0R1 0O\n");
  EXPECT_EQ(grid(one_device(2, 1, {.sharded = "gradients"})),
            "device 0 | 0L0 0U0 0UW0 0F0 0B0 0RS0 0L1 0F1 0B1 0R 0RS1 0R1 0O\n");
}

TEST(Sharding, OverCopiesIsSummedBesideTheNextGroupsPass) {
  EXPECT_EQ(grid(one_device(1, 3, {.sharded = "gradients", .copies = true})),
            "device 0 | 0L0 0U0 0UW0 1U0 0F0 1UW0 2U0 1F0 2L0 2UW0 2F0 2B0 2RS0 1B0 1RS0 2R 2AS "
            "0B0 0RS0 1R 1AS 2AW 2O 0R 0AS 1AW 1O 0AW 0O\n");
  EXPECT_EQ(grid(one_device(2, 1, {.sharded = "gradients", .copies = true})),
            "device 0 | 0L0 0U0 0UW0 0F0 0B0 0RS0 0L1 0F1 0B1 0R 0RS1 0R1 0AS 0AW 0O\n")
      << "after the last micro-batch alone";
}

TEST(Sharding, OfNothingSumsBesideAllPassesBehindIt) {
  const Sharding whole{.sharded = "none", .copies = true, .with_buffers = true};
  const Schedule two = one_device(1, 2, whole);
  EXPECT_EQ(grid(two), "device 0 | 0S 0L0 0F0 1L0 1F0 1B0 1AS 0B0 0AS 1AW 1O 0AW 0O\n");
  EXPECT_EQ(grid(add_gradient_reduction(two)),
            "device 0 | 0S 0L0 0F0 1L0 1F0 1B0 1G 1AS 0B0 0G 0AS 1AW 1O 0AW 0O\n");
  EXPECT_EQ(grid(add_clipping(two, false)),
            "device 0 | 0S 0L0 0F0 1L0 1F0 1B0 1AS 0B0 0AS 1AW 1N 0AW 0N 1O 0O\n");
  EXPECT_EQ(grid(one_device(2, 1, {.sharded = "none", .copies = true})),
            "device 0 | 0L0 0F0 0B0 0L1 0F1 0B1 0AS 0AW 0O\n")
      << "after the last micro-batch alone";
}

/// Of two ranks the second one, whose first stage hands a gradient to the first one.
TEST(Sharding, SendsBeforeItExchanges) {
  const Schedule cut = cut_into_groups(make_schedule("naive", {2, 1, 1}, 2), {1, 2});
  EXPECT_THAT(grid(add_sharding(cut, {.sharded = "none", .copies = true})),
              HasSubstr("2B0 2AS 1B0 1SB0 1AS 2AW 2O 1AW 1O"));
  EXPECT_THAT(grid(add_sharding(cut, {.sharded = "gradients"})), HasSubstr("1B0 1SB0 1RS0"));
}

TEST(Sharding, LeavesGroupsWithoutParametersAlone) {
  const Schedule schedule = one_device(1, 2, {.sharded = "parameters", .empty = {1}});
  EXPECT_EQ(count(schedule, ActionKind::unshard, 1), 0);
  EXPECT_EQ(count(schedule, ActionKind::optimizer, 1), 1);
  validate(schedule);
}

struct Combination {
  std::string schedule;
  int devices;
  int micro_batches;
  int groups;
  Sharding sharding;
};

std::ostream& operator<<(std::ostream& stream, const Combination& of) {
  return stream << of.schedule << " on " << of.devices << ", " << of.micro_batches
                << " micro-batches, " << of.groups << " groups, level "
                << of.sharding.sharded.name() << ", prefetch " << of.sharding.prefetch
                << ", reshard " << of.sharding.reshard_after_forward << ", copies "
                << of.sharding.copies;
}

std::vector<Combination> combinations() {
  std::vector<Combination> all;
  for (const std::string& schedule : schedule_names()) {
    for (const int devices : {1, 2, 3}) {
      for (const int micro_batches : {1, 3, 6}) {
        for (const int groups : {1, 2, 5}) {
          for (const int prefetch : {0, 1, 2, 40}) {
            for (const bool reshard : {true, false}) {
              for (const Sharded level : {Sharded("none"), Sharded("optimizer"),
                                          Sharded("gradients"), Sharded("parameters")}) {
                all.push_back({schedule,
                               devices,
                               micro_batches,
                               groups,
                               {.sharded = level,
                                .reshard_after_forward = reshard,
                                .prefetch = prefetch,
                                .copies = prefetch < 2,
                                .with_buffers = prefetch == 2}});
              }
            }
          }
        }
      }
    }
  }
  return all;
}

Schedule cut_of(const Combination& of) {
  const int each = find_schedule(of.schedule).stages_for(2);
  std::vector<int> groups(static_cast<std::size_t>(of.devices * each), of.groups);
  groups.front() = 1;
  return cut_into_groups(make_schedule(of.schedule, {of.devices, of.micro_batches, each}), groups);
}

// add_sharding() itself refuses what validate_sharding() does.
TEST(Sharding, IsValidOverEveryScheduleAndPolicy) {
  for (const Combination& of : combinations()) {
    SCOPED_TRACE(testing::Message() << of);
    const Schedule cut = cut_of(of);
    Schedule sharded;
    ASSERT_NO_THROW(sharded = add_sharding(cut, of.sharding));
    ASSERT_NO_THROW(validate(sharded));
    ASSERT_NO_THROW(add_sharding(forward_only(cut), of.sharding));
    EXPECT_EQ(count(sharded, ActionKind::unshard), count(sharded, ActionKind::unshard_wait));
    const bool scatters = of.sharding.sharded != "none";
    const bool accumulates = of.sharding.sharded == "optimizer";
    EXPECT_EQ(count(sharded, ActionKind::reduce_scatter),
              scatters ? cut.stages() * (accumulates ? 1 : of.micro_batches) : 0);
    EXPECT_EQ(count(sharded, ActionKind::all_reduce_start), of.sharding.copies ? cut.stages() : 0);
    EXPECT_EQ(count(sharded, ActionKind::all_reduce_wait), of.sharding.copies ? cut.stages() : 0);
    if (of.sharding.sharded != "parameters" || !of.sharding.reshard_after_forward) {
      EXPECT_EQ(count(sharded, ActionKind::unshard), scatters ? cut.stages() : 0) << "once a step";
    }
  }
}

TEST(Sharding, GradientsOfTensorParallelRanksAreSummedBeforeTheyAreScattered) {
  const Schedule schedule = add_gradient_reduction(one_device(2, 1, {.sharded = "gradients"}));
  EXPECT_THAT(grid(schedule), HasSubstr("0B0 0G 0RS0"));
  EXPECT_THAT(grid(schedule), HasSubstr("0G1 0RS1"));
}

TEST(Sharding, NormsAreOfScatteredGradientsAndBeforeEveryUpdate) {
  const Schedule schedule =
      add_clipping(one_device(1, 2, {.sharded = "parameters"}), /*across_ranks=*/true);
  EXPECT_THAT(grid(schedule), HasSubstr("1R 1N"));
  EXPECT_THAT(grid(schedule), HasSubstr("0R 0N 0NS 1O 0O"));
  EXPECT_THAT(grid(add_clipping(one_device(1, 2, {.sharded = "parameters", .copies = true}), true)),
              HasSubstr("0R 0AS 1AW 1N 0AW 0N 0NS 1O 0O"));
}

/// The message with which a device's list is refused.
std::string refusal(std::vector<Action> actions, const Sharding& sharding) {
  Schedule schedule = make_schedule("naive", 1, 1);
  schedule.actions = {std::move(actions)};
  try {
    validate_sharding(schedule, sharding);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(Sharding, WhatIsNotValidIsNamed) {
  const Sharding all{.sharded = "parameters"};
  constexpr auto U = ActionKind::unshard;
  constexpr auto UW = ActionKind::unshard_wait;
  constexpr auto X = ActionKind::reshard;
  constexpr auto RS = ActionKind::reduce_scatter;
  constexpr auto R = ActionKind::gradient_wait;
  constexpr auto O = ActionKind::optimizer;
  const std::vector<Action> right = {{U, 0, 0}, {UW, 0, 0}, {F, 0, 0}, {B, 0, 0},
                                     {X, 0, 1}, {RS, 0, 0}, {R, 0, 0}, {O, 0, 0}};
  EXPECT_EQ(refusal(right, all), "");
  const auto without = [&](std::size_t index) {
    std::vector<Action> rest = right;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
    return refusal(rest, all);
  };
  EXPECT_THAT(without(0), HasSubstr("0UW0 waits for a gather that never started"));
  EXPECT_THAT(without(1), HasSubstr("0F0 finds parameters that are not whole"));
  EXPECT_THAT(without(4), HasSubstr("0X0 is missing"));
  EXPECT_THAT(without(5), HasSubstr("0R waits for a reduce-scatter that never started"));
  EXPECT_THAT(without(6), HasSubstr("0O updates before its gradients are there"));
  const Sharding with_copies{.sharded = "parameters", .copies = true};
  constexpr auto AS = ActionKind::all_reduce_start;
  constexpr auto AW = ActionKind::all_reduce_wait;
  const auto with = [&](std::vector<Action> sum, std::size_t place) {
    std::vector<Action> more = right;
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(place), sum.begin(), sum.end());
    return refusal(more, with_copies);
  };
  EXPECT_EQ(with({{AS, 0, 0}, {AW, 0, 0}}, 7), "");
  EXPECT_THAT(with({}, 7), HasSubstr("0O updates before its gradients are summed over copies"));
  EXPECT_THAT(with({{AS, 0, 0}}, 7), HasSubstr("0O updates before its gradients are summed"));
  EXPECT_THAT(with({{AW, 0, 0}}, 7), HasSubstr("0AW waits for an all-reduce that never started"));
  EXPECT_THAT(with({{AS, 0, 0}, {AW, 0, 0}}, 6), HasSubstr("0AS sums before its gradients are"));
  EXPECT_THAT(with({{AS, 0, 0}, {AW, 0, 0}, {AS, 0, 0}}, 7), HasSubstr("0AS sums gradients twice"));
  EXPECT_THAT(
      refusal({{F, 0, 0}, {B, 0, 0}, {AS, 0, 0}, {B, 0, 1}}, {.sharded = "none", .copies = true}),
      HasSubstr("0B1 adds to gradients that are summed"));
  EXPECT_THAT(refusal({{U, 0, 0}, {UW, 0, 0}, {F, 0, 0}, {X, 0, 0}, {B, 0, 0}}, all),
              HasSubstr("0B0 finds parameters that are not whole"));
  EXPECT_THAT(refusal({{U, 0, 0}, {UW, 0, 0}, {U, 0, 1}}, all),
              HasSubstr("0U1 gathers what is whole or in flight"));
  EXPECT_THAT(refusal({{U, 0, 0}, {U, 1, 0}, {U, 2, 0}}, all),
              HasSubstr("2U0 makes more groups whole than the window has"));
  EXPECT_THAT(refusal({{U, 0, 0}, {UW, 0, 0}, {F, 0, 0}, {B, 0, 0}, {B, 0, 1}}, all),
              HasSubstr("0B1 adds to gradients that no reduce-scatter has taken"));
}

}  // namespace
}  // namespace stratagem::schedules::sharding_test
