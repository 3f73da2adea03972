// The lines that `stratagem train` prints about a training.
#pragma once

#include <string>

#include "bench/config/training_command.h"
#include "bench/launch/job.h"
#include "models/datasets/dataset.h"

namespace stratagem::tools {

/// Returns "900 training, 100 validation samples".
std::string sizes_text(const datasets::Datasets& data);

/// Returns why the training has not met its requirement, in one line; empty if it has.
std::string shortfall(const bench::Requirement& wanted, const bench::TrainResult& found);

/// Returns "400 steps in 84 s, 210 ms a step".
std::string steps_text(const bench::TrainResult& found);

/// Reports why a training ended before its last step, and which evaluation was the best.
std::string early_stop_text(const training::TrainingOptions& options,
                            const bench::TrainResult& found);

/// Reports whether steps waited for their batches, and how many loader threads would be enough if
/// there were too few.
std::string stalls_text(const bench::TrainResult& found);

/// Returns the loss of the first step, on `samples` samples, beside ln(classes), the loss of an
/// untrained model, with a warning if it is further off than chance explains.
std::string first_loss_text(double loss, std::int64_t classes, std::int64_t samples);

}  // namespace stratagem::tools
