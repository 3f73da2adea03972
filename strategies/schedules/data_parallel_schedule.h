// The schedule of nn.DataParallel (PyTorch 2.11): one process
// that copies the model to every device in each step; and of what lies between it and DDP.
//
// Each replica is a stage on a device of its own, and the loss is a stage on the output device:
//
//   device 0 (the module, the loss) | L  .  F  GO  F* B* SG B  RA O
//   device 1                        | P  SC F  .   .  .  SG B  .  .
//
// P replicate, SC scatter, GO gather, SG scatter the outputs' gradient, RA sum the gradients.
//
// Where gradients or parameters travel in buckets, a replica is several segments, runs of layers
// that each are a stage; of two with everything else changed as well:
//
//   device 0 | L  F F B B RA O . RA O P
//   device 1 | SC F F B B RA O P RA . .
#pragma once

#include <algorithm>
#include <vector>

#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

struct DataParallelShape {
  int devices = 1;                 // of the job
  int replicas = 1;                // devices with samples: the first ones
  int output_device = 0;           // of the loss, where there are several replicas
  bool scatter_from_first = true;  // else each replica's samples come from the host
  bool loss_on_replicas = false;   // else on the output device, which gathers the outputs
  bool copies_kept = false;        // replicated after the update, else before the forward pass
  bool reduce_overlapped = false;  // a segment's gradients are summed while others' are made
  bool with_buffers = true;        // the model has some
  std::vector<int> owners = {0};   // [segment]: the device that sums its gradients and updates it

  int segments() const { return static_cast<int>(owners.size()); }
  int stage_of(int replica, int segment) const { return replica * segments() + segment; }
  /// Replicas that are stages: those with samples, and those that own a segment.
  int staged_replicas() const { return std::max(replicas, std::ranges::max(owners) + 1); }
  /// Where the loss is on the output device.
  int loss_stage() const { return stage_of(staged_replicas(), 0); }
};

/// Lowered and valid. With one replica nothing is replicated, scattered or gathered, and the loss
/// is on its device; the owners of segments elsewhere get gradients and send parameters.
Schedule data_parallel_schedule(const DataParallelShape& shape);

/// Its forward passes. Copies that are kept must be those of the present.
Schedule data_parallel_evaluation(const DataParallelShape& shape);

}  // namespace stratagem::schedules
