#include "bench/timing/waves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stratagem::bench::waves_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Waves, PiecesOfDifferentDevicesRunTogetherAndThoseOfOneTakeTurns) {
  EXPECT_THAT(waves_of({0, 1, 2}), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(waves_of({0, 1, 0, 1}), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(waves_of({0, 1, 0}), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(waves_of({0, 0, 0}), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(waves_of({}), IsEmpty());
}

}  // namespace
}  // namespace stratagem::bench::waves_test
