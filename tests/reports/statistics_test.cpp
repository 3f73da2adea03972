#include "reports/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace stratagem::reports::statistics_test {
namespace {

using Samples = std::vector<double>;

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(median(Samples{3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median(Samples{4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median(Samples{7}), 7);
}

TEST(Statistics, PercentileIsLinearBetweenSamples) {
  const Samples samples{40, 10, 20, 30};
  EXPECT_DOUBLE_EQ(percentile(samples, 0), 10);
  EXPECT_DOUBLE_EQ(percentile(samples, 1), 40);
  EXPECT_DOUBLE_EQ(percentile(samples, 0.1), 13);
  EXPECT_THROW(percentile(samples, 1.5), std::invalid_argument);
}

TEST(Statistics, DeviationOfASampleDividesByOneLess) {
  EXPECT_DOUBLE_EQ(sample_standard_deviation(Samples{1, 2, 3, 4, 5}), std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(sample_standard_deviation(Samples{5}), 0);
  EXPECT_DOUBLE_EQ(population_standard_deviation(Samples{1, 2, 3, 4, 5}), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(population_standard_deviation(Samples{5}), 0);
}

TEST(Statistics, NoSamplesAreRefused) {
  EXPECT_THROW(median(Samples{}), std::invalid_argument);
  EXPECT_THROW(mean(Samples{}), std::invalid_argument);
  EXPECT_THROW(median_interval(Samples{}), std::invalid_argument);
}

TEST(MedianInterval, SixSamplesAreMinimumToMaximum) {
  const Interval interval = median_interval(Samples{6, 1, 5, 2, 4, 3});
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 6);
  EXPECT_NEAR(interval.coverage, 0.96875, 1e-12);
}

TEST(MedianInterval, TooFewSamplesGiveTheirTrueCoverage) {
  EXPECT_NEAR(median_interval(Samples{1, 2, 3}).coverage, 0.75, 1e-12);
  EXPECT_NEAR(median_interval(Samples{1, 2, 3, 4, 5}).coverage, 0.9375, 1e-12);
  EXPECT_NEAR(median_interval(Samples{1}).coverage, 0, 1e-12);
}

TEST(MedianInterval, IsTheNarrowestThatReachesTheConfidence) {
  // Published table of order-statistic intervals: n = 20 gives ranks 6 and 15 with 95.9%.
  Samples samples(20);
  std::iota(samples.begin(), samples.end(), 1.0);
  const Interval interval = median_interval(samples);
  EXPECT_DOUBLE_EQ(interval.low, 6);
  EXPECT_DOUBLE_EQ(interval.high, 15);
  EXPECT_NEAR(interval.coverage, 0.9586, 1e-4);
  EXPECT_LT(order_statistic_coverage(20, 7), 0.95);
}

TEST(MedianInterval, ManySamplesDoNotUnderflow) {
  Samples samples(4000);
  std::iota(samples.begin(), samples.end(), 1.0);
  const Interval interval = median_interval(samples);
  EXPECT_GE(interval.coverage, 0.95);
  EXPECT_LT(interval.coverage, 0.96);
  EXPECT_NEAR(interval.low + interval.high, 4001, 1e-9);
  EXPECT_NEAR(interval.high - interval.low, 1.96 * std::sqrt(4000.0), 4);
}

TEST(RatioOf, IsTheMedianOfAllPairsWithWhatTheExactTestDoesNotRefuse) {
  const Samples slow{12, 10, 11, 13};
  const Samples fast{5, 4, 4.5, 5.5};
  const Ratio ratio = ratio_of(slow, fast, 0.95);
  EXPECT_NEAR(ratio.value, 2.4222222, 1e-6);
  EXPECT_DOUBLE_EQ(ratio.low, 10 / 5.5);
  EXPECT_DOUBLE_EQ(ratio.high, 13 / 4.0);
  EXPECT_NEAR(ratio.coverage, 1 - 2.0 / 70, 1e-12);
  EXPECT_FALSE(ratio.holds(1));
  EXPECT_TRUE(ratio_of(slow, Samples{10.5, 20, 30, 40}, 0.95).holds(1));
}

/// Quantiles of the test's distribution from the tables of Mann and Whitney (1947).
TEST(RatioOf, TakesTheNarrowestIntervalOfTheConfidence) {
  Samples values;
  for (int value = 0; value < 10; ++value) values.push_back(std::exp2(value));
  // P(U <= 23) = 0.02163, P(U <= 24) = 0.02621 for ten and ten: the 24th ratio from either end.
  const Ratio ratio = ratio_of(values, values, 0.95);
  EXPECT_NEAR(ratio.coverage, 1 - 2 * 0.02163, 1e-4);
  EXPECT_DOUBLE_EQ(ratio.value, 1);
  EXPECT_DOUBLE_EQ(ratio.low * ratio.high, 1);
  const Ratio all = ratio_of(Samples{1, 2}, Samples{3, 4}, 0.95);
  EXPECT_NEAR(all.coverage, 1 - 2.0 / 6, 1e-12) << "less than asked for, and said so";
  EXPECT_EQ(ratio_of(Samples{1}, Samples{2}, 0.95).coverage, 0);
}

/// Where the normal distribution takes over, the interval's rank hardly moves.
TEST(RatioOf, ManyLaunchesAreLikeAFewLess) {
  std::vector<double> coverages;
  for (const std::size_t count : {25U, 26U}) {
    Samples values;
    for (std::size_t value = 0; value < count; ++value) {
      values.push_back(std::exp2(0.01 * static_cast<double>(value)));
    }
    const Ratio ratio = ratio_of(values, values, 0.95);
    coverages.push_back(ratio.coverage);
    EXPECT_NEAR(std::log2(ratio.high) / 0.01, 0.16 * static_cast<double>(count), 1);
  }
  EXPECT_NEAR(coverages[0], coverages[1], 0.002);
}

TEST(LaunchesToTellApart, AreThoseWhoseFarthestOutcomeReachesTheLevel) {
  EXPECT_EQ(launches_to_tell_apart(0), 4);
  EXPECT_EQ(launches_to_tell_apart(1), 4);
  EXPECT_EQ(launches_to_tell_apart(3), 5);
  EXPECT_EQ(launches_to_tell_apart(21), 6);
  EXPECT_EQ(launches_to_tell_apart(28), 7);
  EXPECT_EQ(launches_to_tell_apart(78), 7);
  EXPECT_EQ(launches_to_tell_apart(91), 8);
  EXPECT_DOUBLE_EQ(confidence_of_each(10), 0.995);
}

}  // namespace
}  // namespace stratagem::reports::statistics_test
