#include "training/epoch.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace stratagem::training {
namespace {

std::int64_t units_of(std::int64_t number, std::int64_t unit) {
  return number / unit + (number % unit == 0 ? 0 : 1);
}

/// Returns the number of an epoch's positions that are trained.
std::int64_t positions_of(const EpochShape& shape) {
  switch (shape.tail) {
    case Tail::pad:
      return units_of(shape.samples, shape.replicas) * shape.replicas;
    case Tail::drop:
      return shape.samples / shape.batch * shape.batch;
    case Tail::exact:
      break;
  }
  return shape.samples;
}

}  // namespace

std::int64_t steps_of_an_epoch(const EpochShape& shape) {
  const std::int64_t steps = units_of(positions_of(shape), shape.batch);
  if (steps > 0) return steps;
  if (shape.samples == 0) throw std::invalid_argument("the training set has no samples");
  throw std::invalid_argument(
      fmt::format("--tail drop: {} samples are fewer than a batch of {}; use pad or exact",
                  shape.samples, shape.batch));
}

std::int64_t last_batch(const EpochShape& shape) {
  return positions_of(shape) - (steps_of_an_epoch(shape) - 1) * shape.batch;
}

std::vector<BatchIndices> batches_of_an_epoch(std::vector<std::int64_t> order,
                                              const EpochShape& shape) {
  const std::int64_t positions = positions_of(shape);
  const auto samples = static_cast<std::int64_t>(order.size());
  std::vector<BatchIndices> batches(static_cast<std::size_t>(steps_of_an_epoch(shape)));
  std::int64_t start = 0;
  for (BatchIndices& batch : batches) {
    const std::int64_t count = std::min(shape.batch, positions - start);
    for (std::int64_t replica = 0; replica < shape.replicas; ++replica) {
      for (std::int64_t place = replica; place < count; place += shape.replicas) {
        batch.push_back(order[static_cast<std::size_t>((start + place) % samples)]);
      }
    }
    start += count;
  }
  return batches;
}

}  // namespace stratagem::training
