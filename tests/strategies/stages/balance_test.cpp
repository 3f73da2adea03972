#include "strategies/stages/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

namespace stratagem::stages::balance_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::size_t> cuts(std::vector<double> costs, int stages) {
  return balance(costs, stages);
}

double slowest_stage(const std::vector<double>& costs, std::vector<std::size_t> boundaries) {
  boundaries.push_back(costs.size());
  double slowest = 0;
  std::size_t begin = 0;
  for (const std::size_t end : boundaries) {
    slowest =
        std::max(slowest, std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(begin),
                                          costs.begin() + static_cast<std::ptrdiff_t>(end), 0.0));
    begin = end;
  }
  return slowest;
}

/// Every way to choose the boundaries.
double best_by_trying(const std::vector<double>& costs, int stages) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> chosen;
  const std::function<void(std::size_t)> choose = [&](std::size_t from) {
    if (chosen.size() + 1 == static_cast<std::size_t>(stages)) {
      best = std::min(best, slowest_stage(costs, chosen));
      return;
    }
    for (std::size_t boundary = from; boundary < costs.size(); ++boundary) {
      chosen.push_back(boundary);
      choose(boundary + 1);
      chosen.pop_back();
    }
  };
  choose(1);
  return best;
}

TEST(Balance, HandCases) {
  EXPECT_THAT(cuts({1, 1, 1, 1}, 2), ElementsAre(2));
  EXPECT_THAT(cuts({1, 1, 1, 1}, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(cuts({9, 1, 1, 1}, 2), ElementsAre(1));
  EXPECT_THAT(cuts({1, 1, 1, 9}, 2), ElementsAre(3));
  EXPECT_THAT(cuts({2, 3, 4, 5, 6}, 3), ElementsAre(2, 4));  // 5, 9, 6
  EXPECT_THAT(cuts({7}, 1), ElementsAre());
  EXPECT_THAT(cuts({0, 0, 0}, 3), ElementsAre(1, 2));
}

TEST(Balance, OfEqualCutsTheEarliest) {
  // The last layer is the slowest stage anyway: every cut before it is as good.
  EXPECT_THAT(cuts({1, 1, 1, 5}, 3), ElementsAre(1, 3));
  EXPECT_THAT(cuts({5, 1, 1, 1}, 3), ElementsAre(1, 2));
}

TEST(Balance, AsGoodAsTryingEveryCut) {
  std::mt19937 generator(7);
  std::uniform_int_distribution<int> layers(1, 9);
  std::uniform_real_distribution<double> cost(0, 10);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> costs(static_cast<std::size_t>(layers(generator)));
    std::ranges::generate(costs, [&] { return cost(generator); });
    const int stages =
        std::uniform_int_distribution<int>(1, static_cast<int>(costs.size()))(generator);
    const auto boundaries = balance(costs, stages);
    ASSERT_EQ(boundaries.size(), static_cast<std::size_t>(stages - 1));
    std::size_t previous = 0;
    for (const std::size_t boundary : boundaries) {
      ASSERT_GT(boundary, previous);
      ASSERT_LT(boundary, costs.size());
      previous = boundary;
    }
    EXPECT_NEAR(slowest_stage(costs, boundaries), best_by_trying(costs, stages), 1e-9);
  }
}

TEST(Balance, MoreStagesThanLayersAreRefused) {
  try {
    cuts({1, 2, 3}, 4);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "cannot cut 3 layers into 4 stages; use 1 to 3");
  }
  EXPECT_THROW(cuts({1, 2, 3}, 0), std::invalid_argument);
  EXPECT_THROW(cuts({1, 2, 3}, -1), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::stages::balance_test
