// What `stratagem train` says of a training, in one line each.
#pragma once

#include <string>

#include "bench/config/training_command.h"
#include "bench/launch/job.h"
#include "models/datasets/dataset.h"

namespace stratagem::tools {

/// "900 training, 100 validation samples".
std::string sizes_text(const datasets::Datasets& data);

/// One line why the training has not reached what was asked for; empty: it has.
std::string shortfall(const bench::Requirement& wanted, const bench::TrainResult& found);

/// "400 steps in 84 s, 210 ms a step".
std::string steps_text(const bench::TrainResult& found);

/// Why a training ended before its last step, and which evaluation was the best.
std::string early_stop_text(const training::TrainingOptions& options,
                            const bench::TrainResult& found);

/// Whether steps waited for their batches, and how many of the loader's threads would be enough
/// where those that there are were not.
std::string stalls_text(const bench::TrainResult& found);

/// The loss of the first step, on so many samples, beside ln(classes), that of a model that knows
/// nothing, with a warning where it is further off than chance can make it.
std::string first_loss_text(double loss, std::int64_t classes, std::int64_t samples);

}  // namespace stratagem::tools
