#include "bench/measure/round_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stratagem::bench::round_order_test {
namespace {

using testing::SizeIs;

TEST(RoundOrder, IsDrawnFromTheSeed) {
  const std::vector<std::int64_t> rounds(8, 3);
  EXPECT_EQ(random_order(rounds, 1), random_order(rounds, 1));
  EXPECT_NE(random_order(rounds, 1), random_order(rounds, 2));
}

TEST(RoundOrder, HasEveryRowOnceARoundAndARoundAtATime) {
  const auto order = random_order({3, 3, 1}, 7);
  ASSERT_THAT(order, SizeIs(7));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(), [](const auto& left, const auto& right) {
    return left.round < right.round;
  }));
  for (std::size_t row = 0; row < 3; ++row) {
    const auto of_row = std::count_if(
        order.begin(), order.end(), [&](const PlannedLaunch& launch) { return launch.row == row; });
    EXPECT_EQ(of_row, row == 2 ? 1 : 3);
  }
}

TEST(RoundOrder, DiffersFromRoundToRound) {
  const auto order = random_order(std::vector<std::int64_t>(10, 2), 3);
  std::vector<std::size_t> first;
  std::vector<std::size_t> second;
  for (const PlannedLaunch& launch : order)
    (launch.round == 0 ? first : second).push_back(launch.row);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace stratagem::bench::round_order_test
