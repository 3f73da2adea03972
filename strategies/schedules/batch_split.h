// How a global batch is cut: among replicas, and into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::schedules {

/// Consecutive samples [start, start + count) of the global batch, normalised together.
struct Slice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  int replica = 0;     // whose running statistics see them
  bool counts = true;  // false: of a replica that has no samples, which takes part all the same

  /// Its share in a batch of `samples`.
  double weight(std::int64_t samples) const;

  bool operator==(const Slice&) const = default;
};

/// Consecutive slices of `size`, the last one smaller when it does not divide `batch`.
std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size);

/// As many consecutive slices as asked for, the first ones a sample larger where it does not divide
/// `batch`; empty ones where there are fewer samples than parts.
std::vector<Slice> split_batch_by_count(std::int64_t batch, std::int64_t parts);

/// As torch.chunk: parts of ceil(batch / parts) samples, so that the last may be smaller and there
/// may be fewer of them than asked for; each is a replica of its own.
std::vector<Slice> chunk_batch(std::int64_t batch, std::int64_t parts);

/// Each replica's share of the batch, cut into micro-batches of `size`, or into `parts` of them or
/// as many as it has samples. A replica without samples has one slice, the first sample, that does
/// not count.
std::vector<Slice> split_batch_per_replica(std::int64_t batch, std::int64_t replicas,
                                           std::int64_t size);
std::vector<Slice> split_batch_per_replica_by_count(std::int64_t batch, std::int64_t replicas,
                                                    std::int64_t parts);

/// With as many slices for each replica as the one with most of them has: where replicas exchange
/// something in each micro-batch. The added ones do not count, as above.
std::vector<Slice> with_equal_counts(const std::vector<Slice>& partition);

}  // namespace stratagem::schedules
