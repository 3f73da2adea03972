#include "strategies/schedules/timeline.h"

#include <gtest/gtest.h>

#include "tests/strategies/action_letters.h"

namespace stratagem::schedules::timeline_test {
namespace {

TimelineEntry entry(int device, ActionKind kind, double start, double end) {
  return {device, {kind, device, 0}, start, end};
}

TEST(Timeline, OneDevicesEntriesByTheirStart) {
  const Timeline mixed{{entry(0, F, 0, 1), entry(1, B, 3, 4), entry(1, F, 1, 2)}, 5};
  const auto own = mixed.of_device(1);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].action.kind, F);
  EXPECT_EQ(own[1].action.kind, B);
  EXPECT_TRUE(mixed.of_device(2).empty());
}

}  // namespace
}  // namespace stratagem::schedules::timeline_test
