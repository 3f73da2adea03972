// The steps of one device with which a launch's own steps are compared.
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
  std::vector<std::int64_t> lengths;  // ascending: the states after so many steps are kept
  std::vector<std::int64_t> skipped;  // steps without an update
  std::int64_t batches = 1;           // how many different ones the steps have in turn
  std::optional<at::ScalarType> exchanged_in = {};  // as OracleUpdate has it
  double shaken = 0;                                // as Oracle::shake() has it
};

/// Trains a model of `workload` by the oracle's plain loop (bench/oracle/oracle.h).
Trajectory trajectory_of(const models::Workload& workload,
                         const std::vector<schedules::Slice>& partition,
                         const TrajectoryRequest& request);

}  // namespace stratagem::bench
