#include "strategies/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "models/registry/named_entries.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/simulate.h"
#include "tests/strategies/action_letters.h"
#include "tests/strategies/schedule_pictures.h"

namespace stratagem::schedules::schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A picture's order alone, as `grid` prints it.
std::string order_of(const SchedulePicture& drawn) {
  std::string text;
  int device = 0;
  for (const std::string& line : lines_of(drawn.picture)) {
    const std::string number = std::to_string(device++);
    text += "device " + number + " |";
    std::istringstream cells(line);
    for (std::string cell; cells >> cell;) {
      if (cell != "..") text += " " + number + cell;
    }
    text += "\n";
  }
  return text;
}

/// The line that a schedule is refused with; empty when it is accepted.
std::string refusal(const Schedule& lowered) {
  try {
    validate(lowered);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

/// Two stages on two devices, in the order given, lowered.
Schedule two_devices(int micro_batches, std::vector<Action> first, std::vector<Action> second) {
  Schedule schedule = empty_schedule("hand-made", {2, micro_batches});
  schedule.actions = {std::move(first), std::move(second)};
  return lower(schedule);
}

TEST(Action, PrintsAsStageKindMicroBatch) {
  EXPECT_EQ(to_string({F, 1, 0}), "1F0");
  EXPECT_EQ(to_string({B, 0, 12}), "0B12");
  EXPECT_EQ(to_string({ActionKind::copy_input, 0, 3}), "0L3");
  EXPECT_EQ(to_string({ActionKind::copy_activation, 2, 1}), "2CF1");
  EXPECT_EQ(to_string({ActionKind::copy_gradient, 2, 1}), "2CB1");
  EXPECT_EQ(to_string({ActionKind::optimizer, 2, 0}), "2O");
}

TEST(Action, HasTheNameOfTheResultsFile) {
  EXPECT_EQ(name(F), "forward");
  EXPECT_EQ(name(B), "backward");
  EXPECT_EQ(name(ActionKind::copy_input), "copy_input");
  EXPECT_EQ(name(ActionKind::copy_activation), "copy_activation");
  EXPECT_EQ(name(ActionKind::copy_gradient), "copy_gradient");
  EXPECT_EQ(name(ActionKind::optimizer), "optimizer");
}

TEST(Schedule, GeneratorsFollowTheirPictures) {
  for (const SchedulePicture& drawn : schedule_pictures()) {
    const Schedule compute =
        find_schedule(drawn.name).generate({drawn.stages, drawn.micro_batches});
    EXPECT_EQ(grid(compute), order_of(drawn))
        << drawn.name << " with " << drawn.stages << " stages, " << drawn.micro_batches
        << " micro-batches" << drawn.picture;
    EXPECT_EQ(compute.name, drawn.name);
    EXPECT_EQ(compute.stages(), drawn.stages);
    EXPECT_EQ(compute.devices(), drawn.stages);
    EXPECT_EQ(compute.micro_batches, drawn.micro_batches);
  }
}

TEST(Schedule, LoweringAddsCopiesAndTheOptimizer) {
  EXPECT_EQ(grid(make_schedule("1f1b", 3, 2)),
            "device 0 | 0L0 0F0 0L1 0F1 0CB0 0B0 0CB1 0B1 0O\n"
            "device 1 | 1CF0 1F0 1CF1 1F1 1CB0 1B0 1CB1 1B1 1O\n"
            "device 2 | 2L0 2CF0 2F0 2B0 2L1 2CF1 2F1 2B1 2O\n");
  EXPECT_EQ(grid(make_schedule("gpipe", 1, 2)), "device 0 | 0L0 0F0 0L1 0F1 0B1 0B0 0O\n");
}

TEST(Schedule, StagesOfOneDeviceNeedNoCopyBetweenThem) {
  Schedule compute;
  compute.name = "both here";
  compute.device_of_stage = {0, 0};
  compute.actions = {{{F, 0, 0}, {F, 1, 0}, {B, 1, 0}, {B, 0, 0}}};
  const Schedule lowered = lower(compute);
  EXPECT_EQ(grid(lowered), "device 0 | 0L0 0F0 1L0 1F0 1B0 0B0 0O 1O\n");
  EXPECT_EQ(refusal(lowered), "");
  EXPECT_THAT(predecessors(lowered, {F, 1, 0}),
              ElementsAre(Action{ActionKind::copy_input, 1, 0}, Action{F, 0, 0}));
  EXPECT_THAT(predecessors(lowered, {B, 0, 0}), ElementsAre(Action{F, 0, 0}, Action{B, 1, 0}));
}

TEST(Schedule, ForwardOnlyKeepsForwardsAndTheirCopies) {
  EXPECT_EQ(grid(forward_only(make_schedule("1f1b", 2, 2))),
            "device 0 | 0L0 0F0 0L1 0F1\n"
            "device 1 | 1L0 1CF0 1F0 1L1 1CF1 1F1\n");
}

TEST(Schedule, PredecessorsAreWhatAnActionReads) {
  const Schedule lowered = make_schedule("gpipe", 3, 2);
  EXPECT_THAT(predecessors(lowered, {ActionKind::copy_input, 0, 1}), ElementsAre());
  EXPECT_THAT(predecessors(lowered, {F, 0, 1}), ElementsAre(Action{ActionKind::copy_input, 0, 1}));
  EXPECT_THAT(predecessors(lowered, {ActionKind::copy_activation, 1, 1}),
              ElementsAre(Action{F, 0, 1}));
  EXPECT_THAT(
      predecessors(lowered, {F, 2, 1}),
      ElementsAre(Action{ActionKind::copy_input, 2, 1}, Action{ActionKind::copy_activation, 2, 1}));
  EXPECT_THAT(predecessors(lowered, {B, 2, 1}), ElementsAre(Action{F, 2, 1}));
  EXPECT_THAT(predecessors(lowered, {ActionKind::copy_gradient, 1, 1}),
              ElementsAre(Action{B, 2, 1}));
  EXPECT_THAT(predecessors(lowered, {B, 1, 1}),
              ElementsAre(Action{ActionKind::copy_gradient, 1, 1}, Action{F, 1, 1}));
  EXPECT_THAT(predecessors(lowered, {ActionKind::optimizer, 1, 0}),
              ElementsAre(Action{B, 1, 0}, Action{B, 1, 1}));
}

TEST(Schedule, ValidateAcceptsEveryRegisteredSchedule) {
  for (const std::string& name : schedule_names()) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        const ScheduleEntry& entry = find_schedule(name);
        const Schedule compute = entry.generate({stages, micro_batches, entry.stages_for(1)});
        EXPECT_EQ(refusal(lower(compute)), "");
      }
    }
  }
}

TEST(Schedule, ABackwardBeforeItsForwardDeadlocks) {
  const std::string why = refusal(two_devices(1, {{F, 0, 0}, {B, 0, 0}}, {{B, 1, 0}, {F, 1, 0}}));
  EXPECT_THAT(why, HasSubstr("schedule hand-made deadlocks: device 0 at 0CB0, device 1 at 1B0\n"));
  EXPECT_THAT(why, HasSubstr("device 0 | 0L0 0F0 0CB0 0B0 0O\n"
                             "device 1 | 1B0 1L0 1CF0 1F0 1O\n"));
}

TEST(Schedule, CrossedOrdersOfTwoDevicesDeadlock) {
  // Device 0 wants micro-batch 0's backward before it sends 1; device 1 wants 1 first.
  const std::string why = refusal(two_devices(2, {{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}},
                                              {{F, 1, 1}, {B, 1, 1}, {F, 1, 0}, {B, 1, 0}}));
  EXPECT_THAT(why, HasSubstr("deadlocks: device 0 at 0CB0, device 1 at 1CF1\n"));
}

TEST(Schedule, AMissingActionIsRefused) {
  const std::string why = refusal(two_devices(1, {{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}}));
  EXPECT_THAT(why, HasSubstr("schedule hand-made is not valid: 1B0 is missing\ndevice 0 | 0L0"));
  EXPECT_THAT(refusal(two_devices(2, {{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}})),
              HasSubstr("0F1 is missing"));
}

TEST(Schedule, AMissingCopyIsRefused) {
  Schedule lowered = two_devices(1, {{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}});
  ASSERT_EQ(refusal(lowered), "");
  std::erase(lowered.actions[1], Action{ActionKind::copy_activation, 1, 0});
  EXPECT_THAT(refusal(lowered), HasSubstr("deadlocks: device 0 at 0CB0, device 1 at 1F0\n"));
}

TEST(Schedule, AnActionTwiceIsRefused) {
  const std::string why =
      refusal(two_devices(1, {{F, 0, 0}, {F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}}));
  EXPECT_THAT(why, HasSubstr("0L0 appears twice\ndevice 0 | 0L0 0F0 0L0 0F0"));
  Schedule lowered = two_devices(1, {{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}});
  lowered.actions[0].push_back({B, 0, 0});
  EXPECT_THAT(refusal(lowered), HasSubstr("0B0 appears twice"));
}

TEST(Schedule, AnActionOnAnotherDeviceThanItsStageIsRefused) {
  const std::string why = refusal(two_devices(1, {{F, 0, 0}, {B, 0, 0}, {F, 1, 0}}, {{B, 1, 0}}));
  EXPECT_THAT(why, HasSubstr("is on device 0, but its stage is on another\ndevice 0 |"));
}

TEST(Schedule, AnUnknownStageIsRefused) {
  Schedule lowered = two_devices(1, {{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}});
  for (const int stage : {2, -1}) {
    Schedule broken = lowered;
    broken.actions[1].push_back({F, stage, 0});
    const std::string why = refusal(broken);
    EXPECT_THAT(why, HasSubstr(std::to_string(stage) + "F0 names a stage that does not exist"));
    EXPECT_THAT(why, HasSubstr("device 1 | 1L0 1CF0 1F0 1B0 1O " + std::to_string(stage) + "F0"));
  }
}

TEST(Schedule, VisitsEveryActionOnceAndAfterWhatItNeeds) {
  const Schedule lowered = make_schedule("1f1b", 4, 6);
  std::vector<Action> visited;
  for_each_in_order(lowered, [&](int device, const Action& action) {
    EXPECT_EQ(lowered.device_of_stage[static_cast<std::size_t>(action.stage)], device);
    for (const Action& needed : predecessors(lowered, action)) {
      EXPECT_TRUE(std::ranges::find(visited, needed) != visited.end())
          << to_string(action) << " before " << to_string(needed);
    }
    visited.push_back(action);
  });
  std::size_t count = 0;
  for (const auto& actions : lowered.actions) count += actions.size();
  EXPECT_EQ(visited.size(), count);
  std::ranges::sort(visited);
  EXPECT_TRUE(std::ranges::adjacent_find(visited) == visited.end());
}

TEST(Schedule, PeakLiveMicroBatches) {
  EXPECT_THAT(peak_live_micro_batches(make_schedule("gpipe", 3, 5)), ElementsAre(5, 5, 5));
  EXPECT_THAT(peak_live_micro_batches(make_schedule("1f1b", 3, 5)), ElementsAre(3, 2, 1));
  EXPECT_THAT(peak_live_micro_batches(make_schedule("1f1b", 4, 2)), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(peak_live_micro_batches(make_schedule("naive", 3, 5)), ElementsAre(1, 1, 1));
  // Narayanan et al. 2021, section 2.2: the warm-up passes of a device, and one more; of half the
  // size with two stages each.
  EXPECT_THAT(peak_live_micro_batches(make_schedule("interleaved_1f1b", {2, 8, 2})),
              ElementsAre(5, 3));
  for (int stages = 1; stages <= 6; ++stages) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const auto peaks = peak_live_micro_batches(make_schedule("1f1b", stages, micro_batches));
      for (int stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(peaks[static_cast<std::size_t>(stage)], std::min(micro_batches, stages - stage));
      }
    }
  }
}

TEST(Schedule, IdealBubbleIsWhatTheSimulatorFinds) {
  for (const std::string& name : schedule_names()) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        for (const double backward_to_forward : {1.0, 2.0, 2.7}) {
          const Schedule schedule = make_schedule(name, stages, micro_batches);
          // Of a split backward pass where it has a closed form: with equal parts.
          if (schedule.split_backward && backward_to_forward != 2.0) continue;
          const auto count = static_cast<std::size_t>(schedule.stages());
          const auto cost =
              cost_function({.forward_ms = std::vector<double>(count, 1.5),
                             .backward_ms = std::vector<double>(count, 1.5 * backward_to_forward)});
          const auto timeline = simulate(schedule, cost);
          EXPECT_NEAR(idle_fraction(timeline, stages),
                      find_schedule(name).ideal_bubble(
                          {stages, micro_batches, find_schedule(name).stages_for(1)}),
                      1e-12)
              << name << ", " << stages << " stages, " << micro_batches << " micro-batches";
        }
      }
    }
  }
}

TEST(Interleaved, IsValidForEverySize) {
  for (int devices = 1; devices <= 5; ++devices) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      for (int each = 1; each <= 4; ++each) {
        const ScheduleSize size{devices, micro_batches, each};
        EXPECT_NO_THROW(make_schedule("interleaved_1f1b", size))
            << devices << " devices, " << micro_batches << " micro-batches, " << each << " each";
      }
    }
  }
}

TEST(Interleaved, TheBubbleShrinksWithTheStagesOfADevice) {
  for (const int devices : {2, 3, 4}) {
    for (const int each : {2, 3}) {
      const ScheduleSize size{devices, 2 * devices, each};
      const auto count = static_cast<std::size_t>(devices * each);
      const auto timeline = simulate(make_schedule("interleaved_1f1b", size),
                                     cost_function({.forward_ms = std::vector<double>(count, 1),
                                                    .backward_ms = std::vector<double>(count, 2)}));
      EXPECT_NEAR(idle_fraction(timeline, devices),
                  find_schedule("interleaved_1f1b").ideal_bubble(size), 1e-12)
          << devices << " devices, " << each << " stages each";
    }
  }
}

TEST(Interleaved, StandsInGroupsOfMicroBatches) {
  EXPECT_EQ(grid(find_schedule("interleaved_1f1b").generate({2, 4, 2})),
            "device 0 | 0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
            "device 1 | 1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

TEST(Interleaved, OtherSchedulesHaveANumberOfTheirOwn) {
  EXPECT_THROW(make_schedule("1f1b", ScheduleSize{2, 4, 2}), std::invalid_argument);
  EXPECT_THROW(make_schedule("zb_v", ScheduleSize{2, 4, 3}), std::invalid_argument);
}

TEST(Validate, RefusesHalvesAmongWholeBackwards) {
  Schedule schedule = make_schedule("1f1b", 2, 2);
  schedule.actions[0].push_back({ActionKind::backward_weight, 0, 0});
  EXPECT_THROW(validate(schedule), std::invalid_argument);
  Schedule split = make_schedule("zb_h1", 2, 2);
  std::erase(split.actions[1], Action{ActionKind::backward_weight, 1, 1});
  EXPECT_THROW(validate(split), std::invalid_argument);
}

TEST(ScheduleRegistry, HoldsEverySchedule) {
  // A schedule whose self-registration is lost in linking would be missing here.
  EXPECT_THAT(schedule_names(), testing::IsSupersetOf({"1f1b", "gpipe", "interleaved_1f1b", "naive",
                                                       "zb_auto", "zb_h1", "zb_h2", "zb_v"}));
  for (const std::string& name : schedule_names()) {
    EXPECT_FALSE(find_schedule(name).summary.empty()) << name;
    EXPECT_EQ(find_schedule(name).name, name);
  }
}

TEST(ScheduleRegistry, AnUnknownNameIsAnsweredWithTheNearest) {
  try {
    find_schedule("1f1p");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(
        error.what(),
        testing::StartsWith("unknown schedule \"1f1p\": did you mean \"1f1b\"? choices: 1f1b, "));
  }
}

TEST(ScheduleRegistry, ATakenNameIsNoted) {
  models::register_entry(ScheduleEntry{"gpipe", "again", nullptr, nullptr});
  EXPECT_THAT(models::registration_errors(),
              testing::ElementsAre("the schedule \"gpipe\" is taken; choose another name"));
  models::registration_errors().clear();
  EXPECT_NE(find_schedule("gpipe").summary, "again");
}

TEST(ScheduleRegistry, CountsBelowOneAreRefused) {
  EXPECT_THROW(make_schedule("gpipe", 0, 1), std::invalid_argument);
  EXPECT_THROW(make_schedule("gpipe", 1, 0), std::invalid_argument);
}

TEST(Validate, RefusesAStageThatNeverUpdates) {
  Schedule schedule = make_schedule("1f1b", 2, 2);
  schedule.actions[1].pop_back();
  EXPECT_THROW(validate(schedule), std::invalid_argument);
}

TEST(Validate, RefusesAMicroBatchBeyondTheCount) {
  Schedule schedule = make_schedule("1f1b", 2, 2);
  schedule.actions[0].push_back({ActionKind::copy_input, 0, 2});
  EXPECT_THROW(validate(schedule), std::invalid_argument);
}

TEST(Lowering, ClippingUpdatesNoStageBeforeEveryNormIsKnown) {
  const Schedule clipped = add_clipping(make_schedule("interleaved_1f1b", {2, 2, 2}), false);
  EXPECT_NO_THROW(validate(clipped));
  EXPECT_THAT(
      predecessors(clipped, {ActionKind::optimizer, 0, 0}),
      ElementsAre(Action{ActionKind::gradient_norm, 0, 0}, Action{ActionKind::gradient_norm, 1, 0},
                  Action{ActionKind::gradient_norm, 2, 0},
                  Action{ActionKind::gradient_norm, 3, 0}));
}

TEST(Lowering, ClippingAcrossRanksAddsUpOnceOnEach) {
  Schedule pipeline = empty_schedule("hand-made", {2, 1});
  pipeline.actions = {{{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}}};
  pipeline.rank_of_device = {0, 1};
  const Schedule clipped = add_clipping(lower(pipeline), true);
  EXPECT_NO_THROW(validate(clipped));
  EXPECT_THAT(grid(clipped), HasSubstr("0N 0NS 0O"));
  EXPECT_THAT(grid(clipped), HasSubstr("1N 1NS 1O"));
  EXPECT_THAT(predecessors(clipped, {ActionKind::optimizer, 1, 0}),
              ElementsAre(Action{ActionKind::norm_sum, 1, 0}));
}

}  // namespace
}  // namespace stratagem::schedules::schedule_test
