// BatchMaker: converts samples of a dataset to batches for a workload.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/workload.h"
#include "strategies/schedules/batch_split.h"
#include "training/epoch.h"
#include "training/image_writer.h"

namespace stratagem::training {

struct BatchMakerOptions {
  std::size_t slots = 1;     // batches that may be in use at a time
  std::int64_t largest = 1;  // the most samples of a batch
  bool pinned = false;       // page-locked memory, for a GPU to copy from
  bool augment = false;      // shifts images by up to an eighth and mirrors them
};

/// Throws std::invalid_argument, in one line, if the workload's model cannot take the data.
void require_fit(const models::Workload& workload, const datasets::SampleFormat& format);

class BatchMaker {
 public:
  /// `workload` and `data` must outlive it. Throws like require_fit().
  BatchMaker(const models::Workload& workload, const datasets::Dataset& data,
             const BatchMakerOptions& options);

  /// Copies samples into a slot, but only the rows of `wanted`, which the rank trains. Several
  /// threads may fill several slots.
  void fill(std::size_t slot, std::span<const std::int64_t> samples,
            std::span<const schedules::Slice> wanted, std::uint64_t epoch);

  /// Returns a view of the first `samples` rows of a slot.
  models::Batch batch(std::size_t slot, std::int64_t samples) const;

 private:
  void write(const models::Batch& into, std::int64_t row, std::int64_t sample,
             std::uint64_t epoch) const;
  models::Batch make_slot(bool pinned) const;

  const models::Workload& workload_;
  const datasets::Dataset& data_;
  BatchMakerOptions options_;
  ImageWriter images_;
  std::vector<models::Batch> drafts_;   // [slot]: float32; integers for classes and tokens
  std::vector<models::Batch> batches_;  // [slot]: the same tensors if the workload takes them
};

}  // namespace stratagem::training
