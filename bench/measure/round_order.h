// Orders the launches of a grid.
//
// Rounds are the repetitions: each is one launch of every row, in an order drawn anew from the
// seed, so that a machine that slows down does so for all rows alike and its drift does not shape
// the curve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stratagem::bench {

struct PlannedLaunch {
  std::size_t row = 0;
  std::int64_t round = 0;

  bool operator==(const PlannedLaunch&) const = default;
};

/// Returns rounds of all rows, each round in a random order; the same for the same seed.
std::vector<PlannedLaunch> random_order(const std::vector<std::int64_t>& rounds_of_row,
                                        std::uint64_t seed);

/// Returns all rounds of a row together, in the order of the rows.
std::vector<PlannedLaunch> block_order(const std::vector<std::int64_t>& rounds_of_row);

}  // namespace stratagem::bench
