#include "bench/measure/round_order.h"

#include <algorithm>
#include <random>
#include <utility>

namespace stratagem::bench {
namespace {

// Written out because the library's shuffle may differ from one version to the next.
void shuffle(std::vector<PlannedLaunch>& launches, std::mt19937_64& random) {
  for (std::size_t left = launches.size(); left > 1; --left) {
    std::swap(launches[left - 1], launches[random() % left]);
  }
}

}  // namespace

std::vector<PlannedLaunch> random_order(const std::vector<std::int64_t>& rounds_of_row,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::int64_t rounds = 0;
  for (const std::int64_t count : rounds_of_row) rounds = std::max(rounds, count);
  std::vector<PlannedLaunch> order;
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<PlannedLaunch> launches;
    for (std::size_t row = 0; row < rounds_of_row.size(); ++row) {
      if (round < rounds_of_row[row]) launches.push_back({row, round});
    }
    shuffle(launches, random);
    order.insert(order.end(), launches.begin(), launches.end());
  }
  return order;
}

std::vector<PlannedLaunch> block_order(const std::vector<std::int64_t>& rounds_of_row) {
  std::vector<PlannedLaunch> order;
  for (std::size_t row = 0; row < rounds_of_row.size(); ++row) {
    for (std::int64_t round = 0; round < rounds_of_row[row]; ++round) order.push_back({row, round});
  }
  return order;
}

}  // namespace stratagem::bench
