// The data of a training, from what its row and its options ask for.
#pragma once

#include <string_view>

#include "bench/config/config.h"
#include "models/datasets/dataset.h"
#include "training/options.h"

namespace stratagem::bench {

/// Throws std::invalid_argument, in one line, for data that cannot be had or that the row's model
/// does not take. `characters`: what `--data text` trains on; it outlives the sets.
datasets::Datasets training_data(const Config& row, const training::TrainingOptions& options,
                                 std::string_view characters);

/// Gives the row the sizes of its data: of images their side and the number of classes. Throws
/// std::invalid_argument where the model cannot take them.
void fit_to_data(Config& row, const datasets::SampleFormat& format);

}  // namespace stratagem::bench
