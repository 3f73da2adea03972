// The two forms of the set `random`. `first` numbers the samples, so that sets of different numbers
// have none in common.
#pragma once

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

/// Uniform in [0, 1): features, and classes or real targets.
DatasetPointer random_numbers(const DatasetOptions& options, std::int64_t first,
                              std::int64_t count);

/// Images of uniform noise and classes.
DatasetPointer random_images(const DatasetOptions& options, std::int64_t first, std::int64_t count);

}  // namespace stratagem::datasets
