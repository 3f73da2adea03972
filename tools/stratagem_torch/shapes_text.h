// Lists the parts of an epoch's batches that each device gets.
#pragma once

#include <string>
#include <vector>

#include "bench/config/config.h"
#include "models/datasets/dataset.h"
#include "training/options.h"

namespace stratagem::tools {

training::EpochShape shape_of(const bench::Config& row, const training::TrainingOptions& options,
                              const datasets::Datasets& data);

/// Returns for every step of the first epoch a line for the batch, and one for each part of it.
std::vector<std::string> shapes_text(const bench::Config& row,
                                     const training::TrainingOptions& options,
                                     const datasets::Datasets& data);

}  // namespace stratagem::tools
