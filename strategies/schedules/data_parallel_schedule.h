// The schedule of nn.DataParallel (PyTorch 2.11), in which one process copies the model to every
// device in each step, and the variants between it and DDP.
//
// Each replica is a stage on its own device, and the loss is a stage on the output device:
//
//   device 0 (the module, the loss) | L  .  F  GO  F* B* SG B  RA O
//   device 1                        | P  SC F  .   .  .  SG B  .  .
//
// P replicate, SC scatter, GO gather, SG scatter the outputs' gradient, RA sum the gradients.
//
// If gradients or parameters travel in buckets, a replica is several segments, runs of layers that
// each are a stage. Two segments, with everything else changed, too:
//
//   device 0 | L  F F B B RA O . RA O P
//   device 1 | SC F F B B RA O P RA . .
#pragma once

#include <algorithm>
#include <vector>

#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

struct DataParallelShape {
  int devices = 1;                 // the job's devices
  int replicas = 1;                // devices with samples: the first ones
  int output_device = 0;           // the device of the loss if there are several replicas
  bool scatter_from_first = true;  // false: each replica's samples come from the host
  bool loss_on_replicas = false;   // false: on the output device, which gathers the outputs
  bool copies_kept = false;        // replicates after the update; false: before the forward pass
  bool reduce_overlapped = false;  // sums a segment's gradients while others' are made
  bool with_buffers = true;        // the model has buffers
  std::vector<int> owners = {0};   // [segment]: the device that sums its gradients and updates it

  int segments() const { return static_cast<int>(owners.size()); }
  int stage_of(int replica, int segment) const { return replica * segments() + segment; }
  /// Returns the number of replicas that are stages: those with samples, and owners of segments.
  int staged_replicas() const { return std::max(replicas, std::ranges::max(owners) + 1); }
  /// Returns the stage of the loss on the output device.
  int loss_stage() const { return stage_of(staged_replicas(), 0); }
};

/// Returns a valid lowered schedule. One replica replicates, scatters and gathers nothing, and has
/// the loss on its device; owners of segments elsewhere get gradients and send parameters.
Schedule data_parallel_schedule(const DataParallelShape& shape);

/// Returns the forward passes. Kept copies must be up to date.
Schedule data_parallel_evaluation(const DataParallelShape& shape);

}  // namespace stratagem::schedules
