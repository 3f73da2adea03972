// The oracle: the update that one device computes with nothing of ours in the way. A bare loop over
// the strategy's batch partition, contiguous memory, no folded convolutions, LibTorch's own
// optimizers, no schedule, no executor.
#pragma once

#include <string>
#include <vector>

#include "models/workload.h"
#include "reports/record.h"
#include "strategies/strategy.h"

namespace stratagem::bench {

struct OracleRun {
  std::vector<double> losses;                   // [step], before each update
  strategies::StateDictionary first_gradients;  // "gradient.<parameter>" of the first step
  strategies::StateDictionary state;            // parameters, buffers, optimizer, after the last
  double evaluation_loss = 0;                   // after the last step
};

/// Trains a model of `workload` on `batch` for `steps` steps. Throws std::runtime_error when some
/// parameter's first gradient is zero: comparing with it would prove nothing.
OracleRun run_oracle(const models::Workload& workload, const models::Batch& batch,
                     const std::vector<strategies::Slice>& partition, int steps);

/// Runs the same steps with `strategy`, which must be fresh, and compares: every gradient of the
/// first step, every loss, then parameters, buffers and optimizer state after the last, and the
/// loss in evaluation mode. Errors are relative to a tensor's largest element.
reports::Verification compare_with_oracle(strategies::Strategy& strategy,
                                          const models::Workload& workload);

/// The loss of `batch` in training mode without an update, on one device over `partition`.
double forward_loss(const models::Workload& workload, const models::Batch& batch,
                    const std::vector<strategies::Slice>& partition);

}  // namespace stratagem::bench
