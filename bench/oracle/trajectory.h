// Computes the steps of one device with which a launch's own steps are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/proof/evidence.h"
#include "models/workload.h"
#include "strategies/schedules/batch_split.h"

namespace stratagem::bench {

/// The steps that a trajectory takes.
struct TrajectoryRequest {
  std::vector<std::int64_t> lengths;  // ascending: the states after these steps are kept
  std::vector<std::int64_t> skipped;  // steps without an update
  std::int64_t batches = 1;           // different batches that the steps use in turn
  std::optional<at::ScalarType> exchanged_in = {};  // see OracleUpdate
  double shaken = 0;                                // see Oracle::shake()
  std::int64_t draw = 0;                            // of the shaken values
};

/// Trains a model of `workload` by the oracle's plain loop (bench/oracle/oracle.h).
Trajectory trajectory_of(const models::Workload& workload,
                         const std::vector<schedules::Slice>& partition,
                         const TrajectoryRequest& request);

/// Returns of two trajectories of equal steps each loss, and each entry of each state, that is
/// further from the exact one.
Trajectory furthest(const Trajectory& one, const Trajectory& other, const Trajectory& exact);

}  // namespace stratagem::bench
