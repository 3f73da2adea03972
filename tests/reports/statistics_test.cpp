#include "reports/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace stratagem::reports {
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

}  // namespace
}  // namespace stratagem::reports
