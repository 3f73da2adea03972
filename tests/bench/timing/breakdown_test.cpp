#include "bench/timing/breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategies/action_letters.h"

namespace stratagem::bench::breakdown_test {
namespace {

using schedules::ActionKind;
using schedules::B;
using schedules::CB;
using schedules::CF;
using schedules::F;
using schedules::L;
using schedules::O;
using schedules::Timeline;
using schedules::TimelineEntry;

TimelineEntry entry(int stage, ActionKind kind, double start, double end) {
  return {stage, {kind, stage, 0}, start, end};
}

/// One before which the device waits for another.
TimelineEntry awaiting(TimelineEntry entry) {
  entry.awaits_device = true;
  return entry;
}

Timeline timeline(double step_ms, std::vector<TimelineEntry> entries) {
  std::ranges::stable_sort(entries, {}, &TimelineEntry::device);
  return {std::move(entries), step_ms};
}

/// Every part, and that they make up the step.
void expect_parts(const reports::Breakdown& found, const reports::Breakdown& expected,
                  double step_ms) {
  EXPECT_DOUBLE_EQ(found.compute, expected.compute);
  EXPECT_DOUBLE_EQ(found.communication_exposed, expected.communication_exposed);
  EXPECT_DOUBLE_EQ(found.communication_hidden, expected.communication_hidden);
  EXPECT_DOUBLE_EQ(found.wait, expected.wait);
  EXPECT_DOUBLE_EQ(found.bubble, expected.bubble);
  EXPECT_DOUBLE_EQ(found.optimizer, expected.optimizer);
  EXPECT_DOUBLE_EQ(found.input_copy, expected.input_copy);
  EXPECT_NEAR(found.other, expected.other, 1e-12);
  EXPECT_DOUBLE_EQ(found.compute + found.communication_exposed + found.wait + found.bubble +
                       found.optimizer + found.input_copy + found.other,
                   step_ms);
}

TEST(Breakdown, OneStageHasNoBubble) {
  //  0  L  1  F  3  .  4  B  8  .  9  O  10  .  12
  const Timeline one =
      timeline(12, {entry(0, L, 0, 1), entry(0, F, 1, 3), entry(0, B, 4, 8), entry(0, O, 9, 10)});
  expect_parts(breakdown(one, 0, 1), {.compute = 6, .optimizer = 1, .input_copy = 1, .other = 4},
               12);
}

TEST(Breakdown, BubblesOfTwoStages) {
  //  stage 0: L F .  . . . . CB B B O
  //  stage 1: L . CF F F B B O  . . .    idle after the last computation is bubble too
  const Timeline two = timeline(
      11, {entry(0, L, 0, 1), entry(0, F, 1, 2), entry(0, CB, 7, 8), awaiting(entry(0, B, 8, 10)),
           entry(0, O, 10, 11), entry(1, L, 0, 1), entry(1, CF, 2, 3), awaiting(entry(1, F, 3, 5)),
           entry(1, B, 5, 7), entry(1, O, 7, 8)});
  expect_parts(
      breakdown(two, 0, 2),
      {.compute = 3, .communication_exposed = 1, .bubble = 5, .optimizer = 1, .input_copy = 1}, 11);
  expect_parts(
      breakdown(two, 1, 2),
      {.compute = 4, .communication_exposed = 1, .bubble = 1 + 3, .optimizer = 1, .input_copy = 1},
      11);
}

TEST(Breakdown, OnlyWhatNeedsAnotherDeviceWaitsInABubble) {
  const Timeline own = timeline(4, {entry(0, F, 2, 4)});
  expect_parts(breakdown(own, 0, 3), {.compute = 2, .other = 2}, 4);
  const Timeline update = timeline(4, {entry(1, O, 2, 4)});
  expect_parts(breakdown(update, 1, 3), {.optimizer = 2, .other = 2}, 4);

  const Timeline forward = timeline(4, {awaiting(entry(2, F, 2, 4))});
  expect_parts(breakdown(forward, 2, 3), {.compute = 2, .bubble = 2}, 4);
  const Timeline summed = timeline(4, {awaiting(entry(1, O, 2, 4))});
  expect_parts(breakdown(summed, 1, 3), {.bubble = 2, .optimizer = 2}, 4);
}

TEST(Breakdown, TheTailIsBubbleWhereOthersStillWork) {
  const Timeline step = timeline(10, {entry(1, B, 0, 4), entry(0, B, 4, 10)});
  expect_parts(breakdown(step, 1, 2), {.compute = 4, .bubble = 6}, 10);
  expect_parts(breakdown(step, 1, 1), {.compute = 4, .other = 6}, 10);
}

TEST(Breakdown, ADeviceThatDidNothingIsAllBubble) {
  const Timeline step = timeline(10, {entry(0, F, 0, 10)});
  expect_parts(breakdown(step, 1, 2), {.bubble = 10}, 10);
}

TEST(Breakdown, TransfersAreHiddenWhereTheDeviceComputes) {
  //  compute: F F F F . . F F        from 0 to 4 and from 6 to 8
  //  copies:  . . C C C . . .        from 2 to 5: two hidden, one exposed, one bubble
  const Timeline step =
      timeline(8, {entry(1, F, 0, 4), entry(1, CF, 2, 5), awaiting(entry(1, F, 6, 8))});
  expect_parts(breakdown(step, 1, 2),
               {.compute = 6, .communication_exposed = 1, .communication_hidden = 2, .bubble = 1},
               8);
}

TEST(Breakdown, ATransferOverSeveralComputations) {
  //  compute: F . F . B       copy from 0 to 5 covers all of it
  const Timeline step =
      timeline(5, {entry(1, F, 0, 1), entry(1, F, 2, 3), entry(1, B, 4, 5), entry(1, CB, 0, 5)});
  expect_parts(breakdown(step, 1, 3),
               {.compute = 3, .communication_exposed = 2, .communication_hidden = 3}, 5);
}

TEST(Breakdown, OverlappingTransfersAreExposedOnce) {
  // Two copies of one gap from 0 to 4, [0, 3) and [1, 4): four, not six.
  const Timeline step = timeline(6, {entry(1, CF, 0, 3), entry(1, L, 1, 4), entry(1, F, 4, 6)});
  expect_parts(breakdown(step, 1, 2), {.compute = 2, .communication_exposed = 3, .input_copy = 1},
               6);
}

TEST(Breakdown, TransfersAfterTheLastComputation) {
  const Timeline step = timeline(6, {entry(0, F, 0, 2), entry(0, L, 3, 5)});
  expect_parts(breakdown(step, 0, 2), {.compute = 2, .bubble = 2, .input_copy = 2}, 6);
}

TEST(Breakdown, SeveralStepsAddUp) {
  // The same step twice; in the two milliseconds between them the first stage waits for nobody.
  const auto both = [](ActionKind kind, double start, double end) {
    const bool waits = kind == B;
    const TimelineEntry first = entry(0, kind, start, end);
    const TimelineEntry second = entry(0, kind, start + 12, end + 12);
    return waits ? std::vector{awaiting(first), awaiting(second)} : std::vector{first, second};
  };
  Timeline steps;
  steps.step_ms = 22;
  for (const auto& part : {both(L, 0, 1), both(F, 1, 3), both(B, 5, 9), both(O, 9, 10)}) {
    steps.entries.insert(steps.entries.end(), part.begin(), part.end());
  }
  expect_parts(breakdown(steps, 0, 2),
               {.compute = 12, .bubble = 4, .optimizer = 2, .input_copy = 2, .other = 2}, 22);
}

TimelineEntry collective(ActionKind kind, double start, double peers, double end) {
  TimelineEntry made = entry(0, kind, start, end);
  made.peers_ms = peers;
  return made;
}

TEST(Breakdown, CollectivesBesideAndBehindTheBackwardPass) {
  //  S . S F F B B B B R R R R O     S waits for its peer until 1
  //              A A A A             hidden
  //                    A A A A A     hidden for 1, waits until 10, exposed from there to 12
  const Timeline step =
      timeline(14, {collective(ActionKind::broadcast, 0, 1, 3), entry(0, F, 3, 5),
                    entry(0, B, 5, 9), collective(ActionKind::all_reduce, 5, 5, 8),
                    collective(ActionKind::all_reduce, 8, 10, 12),
                    collective(ActionKind::gradient_wait, 9, 10, 13), entry(0, O, 13, 14)});
  expect_parts(breakdown(step, 0, 1),
               {.compute = 6,
                .communication_exposed = 5,
                .communication_hidden = 4,
                .wait = 2,
                .optimizer = 1},
               14);
}

TEST(Breakdown, ACollectiveWhosePeersWereThereFirstIsNoWait) {
  const Timeline step = timeline(
      4, {entry(0, B, 0, 2), collective(ActionKind::gradient_wait, 2, 1, 3), entry(0, O, 3, 4)});
  expect_parts(breakdown(step, 0, 1), {.compute = 2, .communication_exposed = 1, .optimizer = 1},
               4);
}

}  // namespace
}  // namespace stratagem::bench::breakdown_test
