#include "bench/timing/message_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stratagem::bench::message_time_test {
namespace {

using testing::ElementsAre;

TEST(TimeOfAMessage, IsThatOfACallOverItsMessages) {
  EXPECT_THAT(ms_of_a_message({8, 12}, "send"), ElementsAre(4, 6)) << "there and back";
  EXPECT_THAT(ms_of_a_message({8, 12}, "all_reduce"), ElementsAre(8, 12));
}

}  // namespace
}  // namespace stratagem::bench::message_time_test
