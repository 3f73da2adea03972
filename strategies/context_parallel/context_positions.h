// The positions of a sequence on each of the ranks that share it, and what a rank's queries see of
// another rank's keys.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/options.h"

namespace stratagem::context_parallel {

using strategies::ContextOrder;

/// Elements start, start + stride, ...
struct Run {
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;

  bool operator==(const Run&) const = default;
};

/// Returns the number that must divide a sequence's length.
std::int64_t parts_of(ContextOrder order, int ranks);

/// Returns the positions of a rank, ascending: one part (contiguous), every ranks-th position
/// (striped), or of 2 x ranks parts the rank-th from either end (zigzag; Llama 3 Team 2024, "The
/// Llama 3 Herd of Models", section 3.3.2).
std::vector<Run> positions_of(ContextOrder order, int ranks, int rank, std::int64_t length);

/// Attention of some of a rank's queries to some of a rank's keys, both counted on the rank.
struct Block {
  Run queries;
  Run keys;
  bool causal = false;  // query i sees keys up to i of the block, else all of them

  bool operator==(const Block&) const = default;
};

/// Returns the blocks that `rank` computes with the `own` keys of `source`; none if it sees none.
std::vector<Block> blocks_of(ContextOrder order, int rank, int source, std::int64_t own);

/// Returns the pairs of a query of `rank` and a key that it sees, in one head of one sample.
std::int64_t visible_pairs(ContextOrder order, int ranks, int rank, std::int64_t length);

}  // namespace stratagem::context_parallel
