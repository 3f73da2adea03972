#include "bench/measure/round_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/bench/fake_workers.h"

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

class RandomOrder : public MeasureTest {
 protected:
  struct Found {
    std::vector<std::int64_t> splits;  // in the order of the launches
    std::int64_t order_seed = 0;       // as recorded
  };

  Found found(std::int64_t order_seed, std::int64_t seed) {
    std::vector<Config> rows = {row(4), row(8), row(16)};
    for (Config& one : rows) {
      one.repetitions = 12;
      one.order_seed = order_seed;
      one.seed = seed;
    }
    const std::size_t before = workers_.measured_splits().size();
    const Measurement measured = measure_rows(rows);
    Found result;
    result.splits = workers_.measured_splits();
    result.splits.erase(result.splits.begin(),
                        result.splits.begin() + static_cast<std::ptrdiff_t>(before));
    for (const auto& [name, value] : measured.results.rows.front().config) {
      if (name == "order_seed") result.order_seed = std::get<std::int64_t>(value);
    }
    return result;
  }
};

TEST_F(RandomOrder, FollowsFromItsOwnSeedAlone) {
  const Found first = found(7, 1);
  EXPECT_EQ(first.order_seed, 7);
  EXPECT_EQ(found(7, 2).splits, first.splits);
  EXPECT_NE(found(8, 1).splits, first.splits);
}

TEST_F(RandomOrder, CanBeRepeatedFromTheSeedThatARunDraws) {
  const Found drawn = found(0, 1);
  EXPECT_GT(drawn.order_seed, 0);
  EXPECT_EQ(found(drawn.order_seed, 1).splits, drawn.splits);
}

}  // namespace
}  // namespace stratagem::bench::round_order_test
