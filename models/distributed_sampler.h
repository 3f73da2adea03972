// The samples that each replica trains in an epoch: PyTorch's DistributedSampler, index by index
// (torch.utils.data.distributed, 2.11), so that a training can be compared with PyTorch's.
#pragma once

#include <cstdint>
#include <vector>

namespace stratagem::models {

struct SamplerOptions {
  std::int64_t samples = 0;  // the dataset's size
  std::int64_t replicas = 1;
  std::int64_t rank = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;  // the same on all replicas
  /// Leaves out the last samples that do not divide evenly; otherwise repeats the first ones.
  bool drop_last = false;
};

class DistributedSampler {
 public:
  /// Throws std::invalid_argument unless 0 <= rank < replicas and there are samples.
  explicit DistributedSampler(const SamplerOptions& options);

  /// Returns the number of indices of each replica in an epoch.
  std::int64_t size() const { return size_; }
  /// Changes the order; without it every epoch has the first one's.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  /// Returns this replica's indices of the epoch, in order.
  std::vector<std::int64_t> indices() const;

 private:
  SamplerOptions options_;
  std::int64_t size_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace stratagem::models
