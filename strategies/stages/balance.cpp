#include "strategies/stages/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace stratagem::stages {

std::vector<std::size_t> balance(std::span<const double> costs, int stages) {
  const std::size_t layers = costs.size();
  const auto parts = static_cast<std::size_t>(std::max(stages, 0));
  if (parts < 1 || parts > layers) {
    throw std::invalid_argument(
        fmt::format("cannot cut {} layers into {} stages; use 1 to {}", layers, stages, layers));
  }
  std::vector<double> sum_before(layers + 1, 0);
  for (std::size_t i = 0; i < layers; ++i) sum_before[i + 1] = sum_before[i] + costs[i];

  // worst[p][n] is the slowest stage of the best cut of the first n layers into p + 1 stages.
  const double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> worst(parts, std::vector<double>(layers + 1, never));
  std::vector<std::vector<std::size_t>> cut_at(parts, std::vector<std::size_t>(layers + 1, 0));
  for (std::size_t n = 1; n <= layers; ++n) worst[0][n] = sum_before[n];
  for (std::size_t p = 1; p < parts; ++p) {
    for (std::size_t n = p + 1; n <= layers; ++n) {
      for (std::size_t boundary = p; boundary < n; ++boundary) {
        const double slowest =
            std::max(worst[p - 1][boundary], sum_before[n] - sum_before[boundary]);
        if (slowest < worst[p][n]) {
          worst[p][n] = slowest;
          cut_at[p][n] = boundary;
        }
      }
    }
  }

  std::vector<std::size_t> boundaries;
  std::size_t end = layers;
  for (std::size_t p = parts - 1; p > 0; --p) {
    end = cut_at[p][end];
    boundaries.push_back(end);
  }
  std::ranges::reverse(boundaries);
  return boundaries;
}

}  // namespace stratagem::stages
