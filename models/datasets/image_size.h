// A set with resized images.
#pragma once

#include "models/datasets/dataset.h"

namespace stratagem::datasets {

/// Returns the set itself if its images have `size` pixels a side, it has no images, or `size` is
/// 0; otherwise a set that resizes them (image_resize.h).
DatasetPointer of_size(DatasetPointer set, std::int64_t size);

}  // namespace stratagem::datasets
