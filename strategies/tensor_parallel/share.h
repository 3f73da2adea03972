// A rank's part of a dimension.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/cpu_kernels/row_functions.h"

namespace stratagem::tensor_parallel {

struct Share {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const Share&) const = default;
};

/// Returns a rank's share of `count` entries, in the order of the ranks. If the number of ranks
/// does not divide them, the first ones have one entry more, as in numpy.array_split.
inline Share share_of(std::int64_t count, int rank, int ranks) {
  const std::int64_t each = count / ranks;
  const std::int64_t left = count % ranks;
  return {rank * each + std::min<std::int64_t>(rank, left), each + (rank < left ? 1 : 0)};
}

/// Returns the heads of a rank. If there are more ranks than groups, a group's query heads are
/// shared by equally many ranks, which all have its key and value head.
inline models::GroupedHeads share_of(const models::GroupedHeads& heads, int rank, int ranks) {
  const std::int64_t sharers = std::max<std::int64_t>(ranks / heads.groups, 1);
  return {.groups = share_of(heads.groups * sharers, rank, ranks).count,
          .queries = heads.queries / sharers};
}

}  // namespace stratagem::tensor_parallel
