// Resizes pictures, bit for bit like torchvision's Resize and CenterCrop on Pillow's images.
#pragma once

#include "models/datasets/picture.h"

namespace stratagem::datasets {

/// Resizes the shorter side to `size` pixels, then keeps the middle `size` x `size` pixels, like
/// torchvision.transforms.Resize(size) and CenterCrop(size) on a PIL image. The filter is Pillow's
/// BILINEAR (src/libImaging/Resample.c): a triangle as wide as the scale, in integers of 22 bits,
/// first along rows, then along columns.
Picture resized_to_square(const Picture& picture, std::int64_t size);

/// Converts [height, width, 3] to ITU-R 601 luma [height, width, 1], like Pillow's convert("L").
Picture grey(const Picture& picture);

}  // namespace stratagem::datasets
