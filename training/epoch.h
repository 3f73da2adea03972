// The samples of each step of an epoch: a pure function of the epoch's order, so that ranks, meshes
// and loader threads cannot change it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::training {

enum class Tail {
  pad,    // repeats the first samples until the replicas have equally many, like DistributedSampler
  drop,   // trains only whole batches
  exact,  // trains each sample once
};

struct EpochShape {
  std::int64_t samples = 0;
  std::int64_t batch = 1;  // the samples of a step, over all replicas
  std::int64_t replicas = 1;
  Tail tail = Tail::pad;
};

/// The samples of a step, the first replica's first.
using BatchIndices = std::vector<std::int64_t>;

/// Returns the number of steps of an epoch. Throws std::invalid_argument if there are none.
std::int64_t steps_of_an_epoch(const EpochShape& shape);

/// Returns the number of samples of an epoch's last step.
std::int64_t last_batch(const EpochShape& shape);

/// Returns the batches of an epoch, all of `shape.batch` samples except perhaps the last. `order`
/// holds every sample once. Step k trains its positions [k batch, (k + 1) batch), of which replica
/// r of R takes r, r + R, ..., like the ranks of a DistributedSampler in their k-th step.
std::vector<BatchIndices> batches_of_an_epoch(std::vector<std::int64_t> order,
                                              const EpochShape& shape);

}  // namespace stratagem::training
