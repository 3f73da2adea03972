#include "bench/timing/per_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stratagem::bench::per_step_test {
namespace {

using strategies::CollectiveCount;
using strategies::CommunicationCounts;
using testing::HasSubstr;

TEST(PerStep, DividesWhatEveryStepDoes) {
  const CommunicationCounts counts = {{"all_reduce", {6, 24, 30}}, {"send", {3, 9, 9}}};
  const CommunicationCounts expected = {{"all_reduce", {2, 8, 10}}, {"send", {1, 3, 3}}};
  EXPECT_EQ(per_step(counts, 3), expected);
}

TEST(PerStep, RefusesWhatOnlySomeStepsDo) {
  EXPECT_THAT(
      [] {
        per_step({{"all_reduce", {7, 0, 0}}}, 3);
      },
      testing::ThrowsMessage<std::runtime_error>(
          HasSubstr("all_reduce: 7 calls in 3 steps, so steps differ")));
  for (const CollectiveCount& count : {CollectiveCount{3, 7, 0}, CollectiveCount{3, 6, 7}}) {
    EXPECT_THROW(per_step({{"send", count}}, 3), std::runtime_error);
  }
}

}  // namespace
}  // namespace stratagem::bench::per_step_test
