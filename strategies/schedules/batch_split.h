// Cuts a global batch among replicas and into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::schedules {

/// Consecutive samples [start, start + count) of the global batch, normalised together.
struct Slice {
  std::int64_t start = 0;
  std::int64_t count = 0;
  int replica = 0;     // the replica whose running statistics see them
  bool counts = true;  // false: its replica has no samples and takes part without them

  /// Returns its share in a batch of `samples`.
  double weight(std::int64_t samples) const;

  bool operator==(const Slice&) const = default;
};

/// Returns consecutive slices of `size`; the last one is smaller if `size` does not divide `batch`.
std::vector<Slice> split_batch(std::int64_t batch, std::int64_t size);

/// Returns `parts` consecutive slices. The first ones have a sample more if `parts` does not divide
/// `batch`, and some are empty if there are fewer samples than parts.
std::vector<Slice> split_batch_by_count(std::int64_t batch, std::int64_t parts);

/// Splits like torch.chunk: parts of ceil(batch / parts) samples, so that the last may be smaller
/// and there may be fewer parts; each is its own replica.
std::vector<Slice> chunk_batch(std::int64_t batch, std::int64_t parts);

/// Return each replica's share of the batch, cut into micro-batches of `size`, or into `parts` of
/// them but no more than it has samples. A replica without samples has one slice, the first sample,
/// that does not count.
std::vector<Slice> split_batch_per_replica(std::int64_t batch, std::int64_t replicas,
                                           std::int64_t size);
std::vector<Slice> split_batch_per_replica_by_count(std::int64_t batch, std::int64_t replicas,
                                                    std::int64_t parts);

/// Gives each replica the largest replica's number of slices, for replicas that exchange something
/// in each micro-batch. The added ones do not count.
std::vector<Slice> with_equal_counts(const std::vector<Slice>& partition);

}  // namespace stratagem::schedules
