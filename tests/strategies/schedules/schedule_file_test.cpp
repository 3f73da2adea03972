#include "strategies/schedules/schedule_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "strategies/schedules/lowering.h"

namespace stratagem::schedules::schedule_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ScheduleFile, HasTheOrderOfItsPasses) {
  const ScheduleEntry entry = read_schedule("csv:mine.csv",
                                            "0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0B1\n"
                                            "1RECV_F0,1F0,1B0,1SEND_B0,,1F1,1B1,\n");
  EXPECT_EQ(entry.stages_per_device, 1);
  EXPECT_EQ(grid(entry.generate({2, 2, 1})),
            "device 0 | 0F0 0F1 0B0 0B1\n"
            "device 1 | 1F0 1B0 1F1 1B1\n");
  EXPECT_DOUBLE_EQ(entry.ideal_bubble({2, 2, 1}), 1.0 / 3);
}

TEST(ScheduleFile, LeavesOutMicroBatchesBeyondTheRows) {
  const ScheduleEntry entry = read_schedule("csv:mine.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(grid(entry.generate({2, 1, 1})), "device 0 | 0F0 0B0\ndevice 1 | 1F0 1B0\n");
}

// Each rank of a V has its stages; a whole backward pass is two halves where others are split.
TEST(ScheduleFile, SplitsAllBackwardPassesIfOneIsSplit) {
  const ScheduleEntry entry =
      read_schedule("csv:v.csv", "0F0,3F0,3I0,0B0,3W0\n1F0,(2F0;2I0)OVERLAP_F_B,1B0,2W0\n");
  EXPECT_EQ(entry.stages_per_device, 2);
  const Schedule schedule = entry.generate({2, 1, 2});
  EXPECT_TRUE(schedule.split_backward);
  EXPECT_THAT(schedule.device_of_stage, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(grid(schedule),
            "device 0 | 0F0 3F0 3I0 0I0 0W0 3W0\n"
            "device 1 | 1F0 2F0 2I0 1I0 1W0 2W0\n");
  validate(lower(schedule));
}

std::string refusal(const std::string& text) {
  try {
    read_schedule("csv:bad.csv", text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ScheduleFile, RefusesOtherTextInOneLineWithItsPlace) {
  for (const auto& [text, why] :
       {std::pair{"0F0,0X1\n", "line 1, cell 2: \"0X1\" is not an action; expected stage, kind"},
        std::pair{"0F0\n\n1F\n", "line 3, cell 1: \"1F\" is not an action"},
        std::pair{"0F99999999999\n", "is not an action"}, std::pair{"\n \n", "has no actions"},
        std::pair{"0F0,0B0\n0F1,0B1\n", "line 2, cell 1: stage 0 is already on line 1"},
        std::pair{"0F0,0B0\n2F0,2B0\n", "stage 1 is missing"},
        std::pair{"0F0,1F0,1B0,0B0\n2F0,2B0\n", "expected equally many on each of 2 ranks"},
        std::pair{"0F0,0B0,0F1\n", "the order is not valid: 0B1 is missing (device 0)"},
        std::pair{"0F0,0F0,0B0\n", "the order is not valid: 0F0 appears twice (device 0)"},
        std::pair{"0B0,0F0\n", "the order deadlocks: device 0 at 0B0"}}) {
    const std::string line = refusal(text);
    EXPECT_THAT(line, HasSubstr(why)) << text;
    EXPECT_THAT(line, ::testing::StartsWith("--schedule csv:bad.csv: "));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
  }
}

TEST(ScheduleFile, RefusesAnotherSize) {
  const ScheduleEntry entry = read_schedule("csv:mine.csv", "0F0,0B0\n1F0,1B0\n");
  EXPECT_THROW(entry.generate({3, 1, 1}), std::invalid_argument);
  EXPECT_THROW(entry.generate({2, 2, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::schedules::schedule_file_test
