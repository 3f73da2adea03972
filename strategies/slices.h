// How a global batch is cut: among replicas, and into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/strategy.h"

namespace stratagem::strategies {

/// Consecutive slices of `size`, the last one smaller when it does not divide `batch`.
std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size);

/// As many consecutive slices as asked for, the first ones a sample larger where it does not divide
/// `batch`. Throws std::invalid_argument when there are fewer samples than parts.
std::vector<Slice> share_batch(std::int64_t batch, std::int64_t parts);

/// Each replica's share of the batch, cut into micro-batches of `size` or into `parts` of them.
/// Throws std::invalid_argument when there are fewer samples than slices.
std::vector<Slice> split_shares(std::int64_t batch, std::int64_t replicas, std::int64_t size);
std::vector<Slice> share_shares(std::int64_t batch, std::int64_t replicas, std::int64_t parts);

}  // namespace stratagem::strategies
