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
    throw std::invalid_argument("statistics of no samples: at least one is needed");
  }
  std::vector<double> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end());
  return ordered;
}

// By logarithms: 2^-n underflows from 1075 samples on.
double binomial_half(std::size_t count, std::size_t successes) {
  const auto n = static_cast<double>(count);
  const auto k = static_cast<double>(successes);
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                  n * std::log(2.0));
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

}  // namespace stratagem::reports
