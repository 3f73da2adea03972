// How a global batch is cut: among replicas, and into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::schedules {

/// Consecutive samples [start, start + count) of the global batch, normalised together.
struct Slice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  int replica = 0;  // whose running statistics see them

  bool operator==(const Slice&) const = default;
};

/// Consecutive slices of `size`, the last one smaller when it does not divide `batch`.
std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size);

/// As many consecutive slices as asked for, the first ones a sample larger where it does not divide
/// `batch`. Throws std::invalid_argument when there are fewer samples than parts.
std::vector<Slice> split_batch_by_count(std::int64_t batch, std::int64_t parts);

/// Each replica's share of the batch, cut into micro-batches of `size` or into `parts` of them.
/// Throws std::invalid_argument when there are fewer samples than slices.
std::vector<Slice> split_batch_per_replica(std::int64_t batch, std::int64_t replicas,
                                           std::int64_t size);
std::vector<Slice> split_batch_per_replica_by_count(std::int64_t batch, std::int64_t replicas,
                                                    std::int64_t parts);

}  // namespace stratagem::schedules
