// Which sends a receive shows to have arrived.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"

namespace stratagem::schedules::answered_sends_test {
namespace {

/// "1RF2: 1SB0" and so on, of each receive that shows something.
std::string answers_of(const Schedule& lowered, int device) {
  std::string text;
  for (const auto& [receive, sends] : answered_sends(lowered, device)) {
    text += (text.empty() ? "" : ", ") + to_string(receive) + ":";
    for (const Action& sent : sends) text += " " + to_string(sent);
  }
  return text;
}

TEST(AnsweredSends, AReceiveShowsWhichSendsHaveArrived) {
  const Schedule pipeline = make_schedule("1f1b", 2, 4, /*ranks=*/2);
  EXPECT_EQ(grid(pipeline),
            "device 0 | 0L0 0F0 0SF0 0L1 0F1 0SF1 0RB0 0B0 0L2 0F2 0SF2 0RB1 0B1 0L3 0F3 0SF3 0RB2 "
            "0B2 0RB3 0B3 0O\n"
            "device 1 | 1L0 1RF0 1F0 1B0 1SB0 1L1 1RF1 1F1 1B1 1SB1 1L2 1RF2 1F2 1B2 1SB2 1L3 1RF3 "
            "1F3 1B3 1SB3 1O\n");
  EXPECT_EQ(answers_of(pipeline, 0), "0RB0: 0SF0, 0RB1: 0SF1, 0RB2: 0SF2, 0RB3: 0SF3");
  // The last two by the first receive of the next step.
  EXPECT_EQ(answers_of(pipeline, 1), "1RF0: 1SB2 1SB3, 1RF2: 1SB0, 1RF3: 1SB1");
  EXPECT_EQ(answers_of(make_schedule("1f1b", 2, 4), 1), "") << "in one process nothing is sent";
}

/// That it does: the other device takes what was sent before it sends what is received, or the
/// whole step lies between.
void expect_sound_answers(const Schedule& lowered, int device) {
  const auto list = [&](int index) { return lowered.actions.at(static_cast<std::size_t>(index)); };
  const auto device_of = [&](const Action& action) {
    return lowered.device_of_stage.at(static_cast<std::size_t>(action.stage));
  };
  const auto position = [&](const Action& action) {
    const auto actions = list(device_of(action));
    return std::ranges::find(actions, action) - actions.begin();
  };
  std::vector<Action> takes;  // by other devices, of what this one sends
  for (int other = 0; other < lowered.devices(); ++other) {
    for (const Action& action : list(other)) {
      if (is_receive(action.kind) && device_of(sender_of(action)) == device)
        takes.push_back(action);
    }
  }
  std::size_t answers = 0;
  for (const auto& [receive, sends] : answered_sends(lowered, device)) {
    for (const Action& sent : sends) {
      ++answers;
      const auto take = std::ranges::find(takes, sent, sender_of);
      ASSERT_NE(take, takes.end()) << to_string(sent);
      EXPECT_EQ(device_of(*take), device_of(sender_of(receive)));
      if (position(sent) > position(receive)) continue;  // it is the next step's
      EXPECT_LT(position(*take), position(sender_of(receive)))
          << to_string(receive) << " says nothing of " << to_string(sent);
    }
  }
  EXPECT_EQ(answers, takes.size()) << "each is shown once";
}

TEST(AnsweredSends, WhatAReceiveShowsHasArrived) {
  for (const std::string& name : schedule_names()) {
    for (const ScheduleSize size : {ScheduleSize{2, 5, 1}, {3, 4, 1}, {2, 4, 2}, {3, 7, 2}}) {
      const int stages = size.stages_per_device;
      if (find_schedule(name).stages_for(stages) != stages) continue;
      SCOPED_TRACE(name + " on " + std::to_string(size.devices) + " devices");
      const Schedule lowered = make_schedule(name, size, size.devices);
      for (int device = 0; device < size.devices; ++device) expect_sound_answers(lowered, device);
    }
  }
}

}  // namespace
}  // namespace stratagem::schedules::answered_sends_test
