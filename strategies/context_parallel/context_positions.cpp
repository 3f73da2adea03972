#include "strategies/context_parallel/context_positions.h"

namespace stratagem::context_parallel {

std::int64_t parts_of(ContextOrder order, int ranks) {
  return order == "zigzag" ? 2 * ranks : ranks;
}

std::vector<Run> positions_of(ContextOrder order, int ranks, int rank, std::int64_t length) {
  const std::int64_t part = length / parts_of(order, ranks);
  if (order == "striped") return {{.start = rank, .count = part, .stride = ranks}};
  if (order == "contiguous" || ranks == 1) return {{.start = rank * part, .count = length / ranks}};
  return {{.start = rank * part, .count = part},
          {.start = (2 * ranks - 1 - rank) * part, .count = part}};
}

std::vector<Block> blocks_of(ContextOrder order, int rank, int source, std::int64_t own) {
  const Run all{.start = 0, .count = own};
  if (source == rank) return {{.queries = all, .keys = all, .causal = true}};
  const bool earlier = source < rank;
  if (order == "contiguous") {
    if (!earlier) return {};
    return {{.queries = all, .keys = all}};
  }
  if (order == "striped") {
    if (earlier) return {{.queries = all, .keys = all, .causal = true}};
    if (own == 1) return {};
    // Query i sees keys up to i - 1.
    return {{.queries = {.start = 1, .count = own - 1},
             .keys = {.start = 0, .count = own - 1},
             .causal = true}};
  }
  // The source's first part is before both of the rank's, or its two are between the rank's two.
  const std::int64_t half = own / 2;
  if (earlier) return {{.queries = all, .keys = {.start = 0, .count = half}}};
  return {{.queries = {.start = half, .count = half}, .keys = all}};
}

std::int64_t visible_pairs(ContextOrder order, int ranks, int rank, std::int64_t length) {
  std::int64_t pairs = 0;
  for (int source = 0; source < ranks; ++source) {
    for (const Block& block : blocks_of(order, rank, source, length / ranks)) {
      pairs += block.causal ? block.queries.count * (block.queries.count + 1) / 2
                            : block.queries.count * block.keys.count;
    }
  }
  return pairs;
}

}  // namespace stratagem::context_parallel
