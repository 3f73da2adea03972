// Resizing of pictures, bit for bit as torchvision's Resize and CenterCrop do it on Pillow's
// images.
#pragma once

#include "models/datasets/picture.h"

namespace stratagem::datasets {

/// The shorter side becomes `size` pixels, then the middle `size` x `size` pixels stay:
/// torchvision.transforms.Resize(size) and CenterCrop(size) of a PIL image. The filter is Pillow's
/// BILINEAR (src/libImaging/Resample.c): a triangle as wide as the scale, in integers of 22 bits,
/// first along rows, then along columns.
Picture resized_to_square(const Picture& picture, std::int64_t size);

/// Of [height, width, 3]: luma of ITU-R 601, as Pillow's convert("L"). [height, width, 1].
Picture grey(const Picture& picture);

}  // namespace stratagem::datasets
