// The two forms of the set `random`. `first` numbers the samples, so that sets of different numbers
// share none.
#pragma once

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

/// Returns features uniform in [0, 1), and classes or real targets.
DatasetPointer random_numbers(const DatasetOptions& options, std::int64_t first,
                              std::int64_t count);

/// Returns images of uniform noise and classes.
DatasetPointer random_images(const DatasetOptions& options, std::int64_t first, std::int64_t count);

}  // namespace stratagem::datasets
