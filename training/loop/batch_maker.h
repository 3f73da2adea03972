// BatchMaker: from samples of a dataset to batches as a workload takes them.
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
  std::int64_t largest = 1;  // samples of a batch
  bool pinned = false;       // page-locked, for a GPU to copy from
  bool augment = false;      // images: shifted by up to an eighth and mirrored
};

/// Throws std::invalid_argument, in one line, for data that the workload's model does not take.
void require_fit(const models::Workload& workload, const datasets::SampleFormat& format);

class BatchMaker {
 public:
  /// `workload` and `data` outlive it. Throws as require_fit() does.
  BatchMaker(const models::Workload& workload, const datasets::Dataset& data,
             const BatchMakerOptions& options);

  /// Puts samples into a slot. Only the rows of `wanted` are written: a rank reads what it trains.
  /// Several threads may fill several slots.
  void fill(std::size_t slot, std::span<const std::int64_t> samples,
            std::span<const schedules::Slice> wanted, std::uint64_t epoch);

  /// The first `samples` rows of a slot, as a view.
  models::Batch batch(std::size_t slot, std::int64_t samples) const;

 private:
  void write(const models::Batch& into, std::int64_t row, std::int64_t sample,
             std::uint64_t epoch) const;
  models::Batch make_slot(bool pinned) const;

  const models::Workload& workload_;
  const datasets::Dataset& data_;
  BatchMakerOptions options_;
  ImageWriter images_;
  std::vector<models::Batch> drafts_;   // [slot]: float32, whole numbers for classes and tokens
  std::vector<models::Batch> batches_;  // [slot]: the same tensors where the workload takes them
};

}  // namespace stratagem::training
