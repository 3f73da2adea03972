// From the bytes of a PNG or JPEG file to a picture.
#pragma once

#include "models/datasets/mapped_file.h"
#include "models/datasets/picture.h"

namespace stratagem::datasets {

/// Red, green and blue. The file's first bytes decide which format it is. An alpha channel is
/// dropped and EXIF's orientation is not applied, as torchvision's ImageFolder does. Throws
/// std::invalid_argument, "--data: FILE: reason", for another format, a damaged or truncated file,
/// and one of more than 178,956,970 pixels (Pillow's limit).
Picture decode_image(const MappedFile& file);

}  // namespace stratagem::datasets
