// A set whose images have another size than its files.
#pragma once

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

/// The set itself where its images have `size` pixels a side, it has none, or `size` is 0; else one
/// that resizes them (image_resize.h).
DatasetPointer of_size(DatasetPointer set, std::int64_t size);

}  // namespace stratagem::datasets
