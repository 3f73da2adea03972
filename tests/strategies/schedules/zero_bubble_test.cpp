#include "strategies/schedules/zero_bubble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace stratagem::schedules::zero_bubble_test {
namespace {

using ::testing::ElementsAre;

using Check = std::function<void(int devices, int micro_batches, int held, int first_of_1f1b)>;

/// Calls `check` for each device of schedules of many sizes with the micro-batches that it holds at
/// most, and those of the first device under 1f1b.
void for_each_peak(const std::string& name, const Check& check) {
  for (int devices = 1; devices <= 6; ++devices) {
    for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      SCOPED_TRACE(testing::Message() << devices << " devices, " << micro_batches);
      const int first = peak_live_micro_batches(make_schedule("1f1b", devices, micro_batches))[0];
      for (const int held : peak_live_micro_batches(make_schedule(name, devices, micro_batches))) {
        check(devices, micro_batches, held, first);
      }
    }
  }
}

TEST(ZeroBubble, OwesWeightGradientsWhereItHasRoom) {
  EXPECT_EQ(grid(find_schedule("zb_h1").generate({3, 4})),
            "device 0 | 0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "device 1 | 1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3\n"
            "device 2 | 2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3\n");
  EXPECT_EQ(grid(find_schedule("zb_h2").generate({2, 4})),
            "device 0 | 0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "device 1 | 1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3\n");
}

TEST(ZeroBubble, InTheShapeOfAVTheFirstDeviceHasBothEnds) {
  const Schedule schedule = find_schedule("zb_v").generate({2, 4, 2});
  EXPECT_THAT(schedule.device_of_stage, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(grid(schedule),
            "device 0 | 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 "
            "3I3 3W3 0I2 0W2 0I3 0W3\n"
            "device 1 | 1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 "
            "1I2 2I3 1I3 1W2 2W3 1W3\n");
}

TEST(ZeroBubble, H1HoldsNoMoreThanTheFirstDeviceOf1f1b) {
  for_each_peak("zb_h1", [](int, int, int held, int first) { EXPECT_LE(held, first); });
}

TEST(ZeroBubble, H2HoldsTwiceAsManyLessOneWithoutABubble) {
  for_each_peak("zb_h2", [](int devices, int micro_batches, int held, int) {
    EXPECT_EQ(held, std::min(micro_batches, 2 * devices - 1));
  });
}

TEST(ZeroBubble, InTheShapeOfAVHoldsTheSameEverywhereAndNoMoreThan1f1b) {
  for_each_peak("zb_v", [](int devices, int micro_batches, int held, int first) {
    EXPECT_LE(held, 2 * first);  // of half the size
    if (micro_batches >= 2 * devices - 1) {
      EXPECT_EQ(held, 2 * first);
    }
  });
}

}  // namespace
}  // namespace stratagem::schedules::zero_bubble_test
