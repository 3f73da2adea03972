// Which samples each step of an epoch trains: a pure function of the epoch's order, so that ranks,
// meshes and loader threads cannot change it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::training {

enum class Tail {
  pad,    // the first samples once more until the replicas have equally many: DistributedSampler's
  drop,   // whole batches alone
  exact,  // each sample once
};

struct EpochShape {
  std::int64_t samples = 0;
  std::int64_t batch = 1;  // samples of a step, over all replicas
  std::int64_t replicas = 1;
  Tail tail = Tail::pad;
};

/// Samples that a step trains, those of the first replica first.
using BatchIndices = std::vector<std::int64_t>;

/// Steps of an epoch. Throws std::invalid_argument where there is none.
std::int64_t steps_of_an_epoch(const EpochShape& shape);

/// Samples of an epoch's last step.
std::int64_t last_batch(const EpochShape& shape);

/// The batches of an epoch, all of `shape.batch` samples but perhaps the last. `order` holds every
/// sample once. Step k trains positions [k batch, (k + 1) batch) of it, of which replica r of R has
/// r, r + R, ...: what the ranks of a DistributedSampler take in their k-th step.
std::vector<BatchIndices> batches_of_an_epoch(std::vector<std::int64_t> order,
                                              const EpochShape& shape);

}  // namespace stratagem::training
