#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "strategies/schedules/registry.h"
#include "strategies/schedules/schedule_file.h"

namespace stratagem::schedules::order_picture_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int width = 100;

std::string picture_of(const std::string& text, int columns = width) {
  const Schedule order = read_order("csv:order.csv", text);
  const OrderFaults faults = faults_of(order);
  EXPECT_FALSE(faults.is_valid());
  return order_picture(order, faults, columns);
}

std::vector<std::string> lines_of(const std::string& picture) {
  std::vector<std::string> lines;
  std::istringstream stream(picture);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(OrderPicture, AMissingMicroBatchHoldsUpTheDeviceThatNeedsIt) {
  EXPECT_EQ(picture_of("0F0,0F1,0B0,0B1\n1F0,1F1,1B1\n"),
            "device 0 | 0F0  0F1 [0B0] 0B1\n"
            "device 1 | 1F0  1F1  1B1\n"
            "device 1: 1B0 is missing\n"
            "device 0 waits at 0B0 for 1B0 on device 1, which is not in the order\n");
}

TEST(OrderPicture, AMissingPassThatNoneNeedsLeavesNoMark) {
  EXPECT_EQ(picture_of("0F0,0B0,0F1\n"),
            "device 0 | 0F0  0B0  0F1\n"
            "device 0: 0B1 is missing\n");
}

TEST(OrderPicture, ABackwardBeforeItsForwardWaitsForIt) {
  EXPECT_EQ(picture_of("0F0,0B0,0F1,0B1\n1F0,1B0,1B1,1F1\n"),
            "device 0 | 0F0  0B0  0F1 [0B1]\n"
            "device 1 | 1F0  1B0 [1B1] 1F1\n"
            "device 0 waits at 0B1 for 1B1 on device 1, which waits, too\n"
            "device 1 waits at 1B1 for 1F1, which comes after it\n");
}

TEST(OrderPicture, TwoDevicesThatWaitForEachOtherNameWhatTheyLack) {
  EXPECT_EQ(picture_of("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"),
            "device 0 | 0F0 [0B0] 0F1  0B1\n"
            "device 1 |[1F1] 1B1  1F0  1B0\n"
            "device 0 waits at 0B0 for 1B0 on device 1, which comes after 1F1\n"
            "device 1 waits at 1F1 for 0F1 on device 0, which comes after 0B0\n");
}

TEST(OrderPicture, MarksAPassThatMayNotBeThere) {
  EXPECT_EQ(picture_of("0F0,0F0,0B0\n"),
            "device 0 | 0F0 [0F0] 0B0\n"
            "device 0: 0F0 appears twice\n");
  EXPECT_THAT(picture_of("0F0,0I0,0W0,0F1,0B1\n1F0,1I0,1F1,1B1,1B1\n"),
              HasSubstr("device 1 | 1F0  1I0  1F1  1I1  1W1 [1I1] 1W1\n"
                        "device 1: 1I1 appears twice\n"));
  EXPECT_EQ(picture_of("0F0,0I0\n"),
            "device 0 | 0F0 [0I0]\n"
            "device 0: 0I0 is not allowed: backward passes are whole\n");
}

TEST(OrderPicture, SplitPassesWaitForTheirFirstHalf) {
  EXPECT_EQ(picture_of("0F0,0W0,0I0\n"),
            "device 0 | 0F0 [0W0] 0I0\n"
            "device 0 waits at 0W0 for 0I0, which comes after it\n");
}

/// Returns the order of 1f1b with two passes of the last device exchanged.
std::string order_with_exchange(int devices, int micro_batches, std::size_t place) {
  Schedule order = find_schedule("1f1b").generate({devices, micro_batches, 1});
  std::swap(order.actions.back()[place], order.actions.back()[place + 1]);
  std::string text;
  for (const auto& actions : order.actions) {
    for (const Action& action : actions) text += to_string(action) + ",";
    text.back() = '\n';
  }
  return text;
}

TEST(OrderPicture, LongLinesShowTheSurroundingsOfTheirMark) {
  const std::string text = order_with_exchange(12, 200, 200);
  for (const int columns : {width, 60}) {
    const std::vector<std::string> lines = lines_of(picture_of(text, columns));
    ASSERT_GE(lines.size(), 24U);
    for (std::size_t device = 0; device < 12; ++device) {
      EXPECT_LE(lines[device].size(), static_cast<std::size_t>(columns));
      EXPECT_GE(lines[device].size() + 10, static_cast<std::size_t>(columns));
      EXPECT_EQ(std::ranges::count(lines[device], '['), 1);
    }
  }
  const std::vector<std::string> lines = lines_of(picture_of(text, 60));
  EXPECT_EQ(lines[11], "device 11 | ...     11F99   11B99  [11B100] 11F100  ...");
  EXPECT_THAT(lines, Contains("device 11 waits at 11B100 for 11F100, which comes after it"));
}

TEST(OrderPicture, ALongLineShowsItsBeginningOrItsEnd) {
  const std::string text = order_with_exchange(1, 40, 0);  // waits at its first pass
  EXPECT_THAT(picture_of(text, 40), StartsWith("device 0 |[0B0]"));
  std::string missing = order_with_exchange(1, 40, 0);
  missing.replace(0, missing.find(",0F1,"), "0F0");  // without 0B0
  EXPECT_EQ(lines_of(picture_of(missing, 40)).front(), "device 0 | ...   0B38  0F39  0B39");
}

TEST(OrderPicture, FaultsHavePlaces) {
  const OrderFaults faults =
      faults_of(read_order("csv:order.csv", "0F0,0F1,0B0,0B1\n1F0,1F1,1B1\n"));
  ASSERT_TRUE(faults.fault);
  EXPECT_EQ(faults.fault->device, 1);
  EXPECT_FALSE(faults.fault->place);
  EXPECT_THAT(faults.done, ElementsAre(2, 3));
  EXPECT_THAT(faults.awaited, ElementsAre(Action{ActionKind::backward, 1, 0}, std::nullopt));
  EXPECT_TRUE(faults_of(read_order("csv:order.csv", "0F0,0B0\n1F0,1B0\n")).is_valid());
}

}  // namespace
}  // namespace stratagem::schedules::order_picture_test
