// The few statistics that the table and the JSON need, without assumptions on the distribution.
//
// Interval of the median: with n sorted samples x(1) <= ... <= x(n), [x(k), x(n+1-k)] covers the
// median with probability 1 - 2 P(Binomial(n, 1/2) <= k - 1). The largest k that still reaches the
// confidence is taken; six samples give minimum to maximum and 96.9%. Fewer cannot reach 95%:
// minimum to maximum is given with the coverage that it really has, 1 - 2^(1-n).
#pragma once

#include <cstddef>
#include <span>

namespace stratagem::reports {

struct Interval {
  double low = 0;
  double high = 0;
  double coverage = 0;  // probability, 0 to 1
};

/// All throw std::invalid_argument for an empty list.
double mean(std::span<const double> values);
double median(std::span<const double> values);

/// Linear between the two neighbouring samples; `fraction` in [0, 1], else std::invalid_argument.
double percentile(std::span<const double> values, double fraction);

/// With n - 1 in the denominator; 0 for one value.
double sample_standard_deviation(std::span<const double> values);

/// With n in the denominator.
double population_standard_deviation(std::span<const double> values);

/// Probability that [x(rank), x(count + 1 - rank)] holds the median; ranks count from 1.
double order_statistic_coverage(std::size_t count, std::size_t rank);

/// Tukey's fences: 1.5 interquartile ranges beyond the quartiles (Tukey, Exploratory Data Analysis,
/// 1977). What lies outside is an outlier: marked, and counted like every other sample.
struct Fences {
  double low = 0;
  double high = 0;

  bool hold(double value) const { return low <= value && value <= high; }
};
Fences tukey_fences(std::span<const double> values);

Interval median_interval(std::span<const double> values, double confidence = 0.95);

}  // namespace stratagem::reports
