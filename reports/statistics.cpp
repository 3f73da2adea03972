#include "reports/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace stratagem::reports {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  if (values.empty()) {
    throw std::invalid_argument("statistics need at least one sample");
  }
  std::vector<double> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end());
  return ordered;
}

// Uses logarithms: 2^-n underflows from 1075 samples on.
double binomial_half(std::size_t count, std::size_t successes) {
  const auto n = static_cast<double>(count);
  const auto k = static_cast<double>(successes);
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                  n * std::log(2.0));
}

/// Returns P(U <= 0), P(U <= 1), ... of two alike groups of `n` and `m`: U counts the pairs in
/// which the first is smaller; the ways to draw a U are the coefficients of the Gaussian binomial.
/// Beyond a double's range, uses the normal distribution with a correction for continuity.
std::vector<double> mann_whitney_tail(std::size_t n, std::size_t m) {
  std::vector<double> ways(n * m + 1);
  if (constexpr std::size_t exact = 50; n + m > exact) {
    const auto pairs = static_cast<double>(n * m);
    const double deviation = std::sqrt(pairs * static_cast<double>(n + m + 1) / 12);
    for (std::size_t u = 0; u < ways.size(); ++u) {
      const double distance = static_cast<double>(u) + 0.5 - pairs / 2;
      ways[u] = std::erfc(-distance / deviation / std::sqrt(2.0)) / 2;
    }
    return ways;
  }
  ways[0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t u = n * m; u >= m + i; --u) ways[u] -= ways[u - m - i];
    for (std::size_t u = i; u <= n * m; ++u) ways[u] += ways[u - i];
  }
  std::partial_sum(ways.begin(), ways.end(), ways.begin());
  const double all = ways.back();
  for (double& sum : ways) sum /= all;
  return ways;
}

double squared_deviations(std::span<const double> values) {
  const double middle = mean(values);
  return std::transform_reduce(
      values.begin(), values.end(), 0.0, std::plus<>(),
      [middle](double value) { return (value - middle) * (value - middle); });
}

}  // namespace

double mean(std::span<const double> values) {
  const std::vector<double> ordered = sorted(values);
  return std::accumulate(ordered.begin(), ordered.end(), 0.0) / static_cast<double>(ordered.size());
}

double median(std::span<const double> values) { return percentile(values, 0.5); }

double percentile(std::span<const double> values, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw std::invalid_argument("a percentile's fraction lies between 0 and 1");
  }
  const std::vector<double> ordered = sorted(values);
  const double position = fraction * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], position - static_cast<double>(below));
}

double sample_standard_deviation(std::span<const double> values) {
  const double squares = squared_deviations(values);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double population_standard_deviation(std::span<const double> values) {
  return std::sqrt(squared_deviations(values) / static_cast<double>(values.size()));
}

double order_statistic_coverage(std::size_t count, std::size_t rank) {
  double tail = 0;
  for (std::size_t successes = 0; successes < rank; ++successes) {
    tail += binomial_half(count, successes);
  }
  return std::max(0.0, 1 - 2 * tail);
}

Fences tukey_fences(std::span<const double> values) {
  const double first = percentile(values, 0.25);
  const double third = percentile(values, 0.75);
  const double reach = 1.5 * (third - first);
  return {first - reach, third + reach};
}

Interval median_interval(std::span<const double> values, double confidence) {
  const std::vector<double> ordered = sorted(values);
  std::size_t rank = 1;
  while (2 * (rank + 1) <= ordered.size() &&
         order_statistic_coverage(ordered.size(), rank + 1) >= confidence) {
    ++rank;
  }
  return {ordered[rank - 1], ordered[ordered.size() - rank],
          order_statistic_coverage(ordered.size(), rank)};
}

Ratio ratio_of(std::span<const double> above, std::span<const double> below, double confidence) {
  std::vector<double> ratios;
  for (const double numerator : above) {
    for (const double denominator : below) ratios.push_back(numerator / denominator);
  }
  ratios = sorted(ratios);
  const std::vector<double> tail = mann_whitney_tail(above.size(), below.size());
  std::size_t rank = 1;
  while (2 * (rank + 1) <= ratios.size() && 1 - 2 * tail[rank] >= confidence) ++rank;
  return {median(ratios), ratios[rank - 1], ratios[ratios.size() - rank],
          std::max(0.0, 1 - 2 * tail[rank - 1])};
}

double confidence_of_each(std::size_t pairs, double confidence) {
  return 1 - (1 - confidence) / static_cast<double>(std::max<std::size_t>(pairs, 1));
}

std::int64_t launches_to_tell_apart(std::size_t pairs) {
  constexpr std::int64_t fewest = 4;
  const double level = 1 - confidence_of_each(pairs);
  double apart = 1;  // 2 / (2n over n) for n = 1
  std::int64_t launches = 1;
  while (launches < fewest || apart > level) {
    ++launches;
    apart *= static_cast<double>(launches) / static_cast<double>(4 * launches - 2);
  }
  return launches;
}

}  // namespace stratagem::reports
