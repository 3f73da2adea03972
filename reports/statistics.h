// The few statistics that the table and the JSON need, without assumptions on the distribution.
//
// Interval of the median: with n sorted samples x(1) <= ... <= x(n), [x(k), x(n+1-k)] covers the
// median with probability 1 - 2 P(Binomial(n, 1/2) <= k - 1). The largest k that still reaches the
// confidence is taken; six samples give minimum to maximum and 96.9%. Fewer cannot reach 95%:
// minimum to maximum is given with the coverage that it really has, 1 - 2^(1-n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reports/fields.h"

namespace stratagem::reports {

struct Interval {
  double low = 0;
  double high = 0;
  double coverage = 0;  // probability, 0 to 1

  STRATAGEM_FIELDS(low, high, coverage)
};

/// All throw std::invalid_argument for an empty list.
double mean(std::span<const double> values);
double median(std::span<const double> values);

/// Interpolates linearly; throws std::invalid_argument unless `fraction` is in [0, 1].
double percentile(std::span<const double> values, double fraction);

/// Divides by n - 1; returns 0 for one value.
double sample_standard_deviation(std::span<const double> values);

/// Divides by n.
double population_standard_deviation(std::span<const double> values);

/// Returns the probability that [x(rank), x(count + 1 - rank)] holds the median; ranks from 1.
double order_statistic_coverage(std::size_t count, std::size_t rank);

/// Tukey's fences: 1.5 interquartile ranges beyond the quartiles (Tukey, Exploratory Data Analysis,
/// 1977). A sample outside is an outlier: marked, and counted like every other sample.
struct Fences {
  double low = 0;
  double high = 0;

  bool hold(double value) const { return low <= value && value <= high; }
};
Fences tukey_fences(std::span<const double> values);

Interval median_interval(std::span<const double> values, double confidence = 0.95);

/// The ratio of a group of positive times to another.
struct Ratio {
  double value = 1;  // the median over all pairs (Hodges and Lehmann, 1963)
  double low = 1;
  double high = 1;
  double coverage = 0;  // probability, 0 to 1

  bool holds(double ratio) const { return low <= ratio && ratio <= high; }

  STRATAGEM_FIELDS(value, low, high, coverage)
};

/// Returns the ratio of times in `above` to times in `below`, with those that the exact test of
/// Mann and Whitney (1947) does not reject: of the n m sorted ratios of all pairs [r(k), r(nm+1-k)]
/// covers with probability 1 - 2 P(U <= k - 1). The largest k that still reaches the confidence is
/// taken; if none does, all ratios are given with their real coverage.
Ratio ratio_of(std::span<const double> above, std::span<const double> below, double confidence);

/// Returns the share of the level of each of `pairs` comparisons, so that all of them hold together
/// with `confidence` (Bonferroni).
double confidence_of_each(std::size_t pairs, double confidence = 0.95);

/// Returns the smallest number of launches of every row that can distinguish one pair of `pairs` at
/// all: two groups of n that do not meet have probability 2 / (2n over n). At least four, so that a
/// second file can be compared with this one.
std::int64_t launches_to_tell_apart(std::size_t pairs);

}  // namespace stratagem::reports
