// BatchStream: this rank's rows of the batches of an epoch or of an evaluation, in order.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/workload.h"
#include "strategies/strategy.h"
#include "training/epoch.h"
#include "training/loader.h"
#include "training/loop/batch_maker.h"

namespace stratagem::training {

/// Returns whether making a batch of `samples` takes less time than waking a thread for it.
bool is_made_at_once(const datasets::SampleFormat& format, std::int64_t samples);

class BatchStream {
 public:
  struct Options {
    std::int64_t replicas = 1;  // see TrainerContext
    bool pinned = false;        // see TrainerContext
    bool augment = false;
    std::uint64_t epoch = 0;
    std::int64_t threads = 1;
    std::int64_t prefetch = 2;
    std::size_t in_use = 1;  // batches in use when the next one is requested, plus that one
    std::chrono::milliseconds timeout{120'000};
  };

  /// The references must outlive it. `batches` is not empty; the first is the largest.
  BatchStream(const models::Workload& workload, const strategies::Strategy& strategy,
              const datasets::Dataset& data, std::vector<BatchIndices> batches,
              const Options& options);

  std::size_t batches() const { return batches_.size(); }
  /// Throws like Loader::next().
  models::Batch next();
  LoaderWork worked() const { return loader_.worked(); }

 private:
  std::vector<BatchIndices> batches_;
  // This rank's rows by the batch's size; all rows if this process has all replicas.
  std::map<std::size_t, std::vector<schedules::Slice>> rows_;
  std::size_t next_ = 0;
  BatchMaker maker_;
  Loader loader_;  // last: its threads use the other members
};

}  // namespace stratagem::training
