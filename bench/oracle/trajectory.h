// The steps of one device that a launch's own steps are held against.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/proof/evidence.h"
#include "models/workload.h"
#include "strategies/schedules/batch_split.h"

namespace stratagem::bench {

/// Which steps to take.
struct TrajectoryRequest {
  std::vector<std::int64_t> lengths;  // ascending: the states behind so many steps are kept
  std::vector<std::int64_t> skipped;  // steps without an update
  std::optional<at::ScalarType> exchanged_in;           // as OracleUpdate has it
  double shaken = 0;                                    // as Oracle::shake() has it
  std::function<std::uint64_t(std::int64_t)> batch_of;  // [step]: the number of its batch
};

/// Trains a model of `workload` by the oracle's plain loop (bench/oracle/oracle.h).
Trajectory trajectory_of(const models::Workload& workload,
                         const std::vector<schedules::Slice>& partition,
                         const TrajectoryRequest& request);

}  // namespace stratagem::bench
