// The schedule of nn.DataParallel (PyTorch 2.11): one process
// that copies the model to every device in each step.
//
// Each replica is a stage on a device of its own, and the loss is a stage on the output device:
//
//   device 0 (the module, the loss) | L  .  F  GO  F* B* SG B  RA O
//   device 1                        | P  SC F  .   .  .  SG B  .  .
//
// P replicate, SC scatter, GO gather, SG scatter the outputs' gradient, RA sum the gradients.
#pragma once

#include "strategies/schedules/schedule.h"

namespace stratagem::data_parallel {

struct DataParallelShape {
  int devices = 1;                 // of the job
  int replicas = 1;                // devices with samples: the first ones
  int output_device = 0;           // of the loss, where there are several replicas
  bool scatter_from_first = true;  // else each replica's samples come from the host
};

/// Lowered and valid. With one replica nothing is replicated, scattered or gathered, and the loss
/// is on its device.
schedules::Schedule data_parallel_schedule(const DataParallelShape& shape);

}  // namespace stratagem::data_parallel
