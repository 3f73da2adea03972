#include "strategies/schedules/zero_bubble_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/options.h"
#include "strategies/schedules/lowering.h"

namespace stratagem::schedules::zero_bubble_search_test {
namespace {

using ::testing::HasSubstr;

const std::vector<PassTimes>& various_times() {
  static const std::vector<PassTimes> all = {{1, 1, 1, 0},     {2, 2, 1, 0},   {1, 2, 3, 0.25},
                                             {1, 1, 0.3, 0.5}, {3, 1, 1, 0.1}, {1, 1, 1, 2}};
  return all;
}

void for_each_size(const std::function<void(const ScheduleSize&)>& visit) {
  for (int devices = 1; devices <= 7; ++devices) {
    for (const int micro_batches : {1, 2, 3, 5, 8, 13, 20}) {
      SCOPED_TRACE(testing::Message() << devices << " devices, " << micro_batches);
      visit({devices, micro_batches});
    }
  }
}

/// Returns the most activations that a device holds, in micro-batches: `weight_share` of one from
/// its I to its W.
double most_held(const std::vector<Action>& actions, double weight_share) {
  double held = 0;
  double most = 0;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::forward) held += 1;
    if (action.kind == ActionKind::backward_input) held -= 1 - weight_share;
    if (action.kind == ActionKind::backward_weight) held -= weight_share;
    most = std::max(most, held);
  }
  return most;
}

TEST(ZeroBubbleSearch, NoDeviceExceedsItsLimit) {
  for_each_size([](const ScheduleSize& size) {
    for (const PassTimes& times : various_times()) {
      for (const int limit : {1, 2, size.devices, 2 * size.devices, 3 * size.devices}) {
        for (const double share : {1.0, 0.4, 0.0}) {
          const Schedule found = zero_bubble_search(size, times, limit, share);
          EXPECT_NO_THROW(validate(lower(found))) << "limit " << limit;
          for (const auto& actions : found.actions) {
            EXPECT_LE(most_held(actions, share), limit + 1e-6);
          }
          if (share < 1) continue;
          EXPECT_LE(std::ranges::max(peak_live_micro_batches(found)), limit);
        }
      }
    }
  });
}

TEST(ZeroBubbleSearch, IsNoWorseThanOrdersByHandWithinTheirLimits) {
  for_each_size([](const ScheduleSize& size) {
    ScheduleSize narrow = size;
    narrow.live_limit = size.devices;
    const auto bubble = [](const char* name, const ScheduleSize& of) {
      return find_schedule(name).ideal_bubble(of);
    };
    EXPECT_LE(bubble("zb_auto", narrow), bubble("zb_h1", size) + 1e-9);
    EXPECT_LE(bubble("zb_auto", size), bubble("zb_h2", size) + 1e-9);
  });
}

TEST(ZeroBubbleSearch, WithTwiceTheDevicesLeavesNoBubble) {
  for (int devices = 1; devices <= 12; ++devices) {
    for (const int micro_batches : {2 * devices - 1, 2 * devices, 5 * devices + 1}) {
      EXPECT_NEAR(find_schedule("zb_auto").ideal_bubble({devices, micro_batches}), 0, 1e-9)
          << devices << " devices, " << micro_batches;
    }
  }
}

TEST(ZeroBubbleSearch, MoreRoomIsNeverWorse) {
  double before = 1;
  for (int limit = 1; limit <= 20; ++limit) {
    const double bubble = find_schedule("zb_auto").ideal_bubble({8, 32, 1, {}, limit});
    EXPECT_LE(bubble, before + 1e-9) << "limit " << limit;
    before = bubble;
  }
}

TEST(ZeroBubbleSearch, TheIdealBubbleIsThatOfTheOrderInItsOwnTimes) {
  const auto& entry = find_schedule("zb_auto");
  const ScheduleSize equal{.devices = 4, .micro_batches = 12};
  EXPECT_NEAR(entry.ideal_bubble(equal), 0, 1e-9);
  ScheduleSize slow = equal;
  slow.pass_times = {.forward = 1, .input = 1, .weight = 1, .transfer = 2};
  EXPECT_GT(entry.ideal_bubble(slow), 0.01) << "transfers delay the first gradient";
  ScheduleSize narrow = equal;
  narrow.live_limit = 1;
  EXPECT_GT(entry.ideal_bubble(narrow), 0.5) << "one micro-batch after the other";
}

TEST(ZeroBubbleSearch, DependsOnRatiosOfTimes) {
  const ScheduleSize size{4, 12};
  const std::string order = grid(zero_bubble_search(size, {2, 2, 1, 0.5}, 8));
  EXPECT_EQ(grid(zero_bubble_search(size, {2, 2, 1, 0.5}, 8)), order);
  EXPECT_EQ(grid(zero_bubble_search(size, {2048, 2048, 1024, 512}, 8)), order);
  EXPECT_NE(grid(zero_bubble_search(size, {1, 1, 1, 0}, 8)), order);
}

TEST(ZeroBubbleSearch, FindsTheOrderOfTwoDevices) {
  EXPECT_EQ(grid(zero_bubble_search({2, 3}, {}, 2)),
            "device 0 | 0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "device 1 | 1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
}

TEST(ZeroBubbleSearch, ADeviceNeedsRoomForAMicroBatch) {
  EXPECT_THROW(zero_bubble_search({2, 3}, {}, 0), std::invalid_argument);
}

TEST(ZbAuto, FollowsTheTimesAndTheLimitOfItsSize) {
  const auto order = [](const PassTimes& times, int limit) {
    return grid(find_schedule("zb_auto").generate({4, 12, 1, times, limit}));
  };
  EXPECT_EQ(order({}, 0), grid(zero_bubble_search({4, 12}, {}, 8)));
  EXPECT_EQ(order({2, 2, 1, 0.5}, 3), grid(zero_bubble_search({4, 12}, {2, 2, 1, 0.5}, 3)));
  EXPECT_EQ(make_schedule("zb_auto", 4, 12).name, "zb_auto");
}

TEST(PassTimes, AreFourNumbers) {
  const PassTimes times = pass_times_in("2+1.5+1+0.25");
  EXPECT_EQ(times.forward, 2);
  EXPECT_EQ(times.input, 1.5);
  EXPECT_EQ(times.weight, 1);
  EXPECT_EQ(times.transfer, 0.25);
}

TEST(PassTimes, AreEqualByDefault) {
  const PassTimes text = pass_times_in(strategies::StrategyOptions().pass_times);
  const PassTimes times;
  EXPECT_EQ(text.forward, times.forward);
  EXPECT_EQ(text.input, times.input);
  EXPECT_EQ(text.weight, times.weight);
  EXPECT_EQ(text.transfer, times.transfer);
}

TEST(PassTimes, RefusesOtherTextInOneLine) {
  for (const char* text : {"", "1", "1+1+1", "1+1+1+1+1", "1+0+1+0", "1+1+1+-1", "1+1+nan+0",
                           "1+1+1e30+0", "1+1+1e-30+0", "1,1,1,0", "1+1+1+0x"}) {
    try {
      pass_times_in(text);
      FAIL() << text << " is accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("--pass-times " + std::string(text) + ": expected"));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stratagem::schedules::zero_bubble_search_test
