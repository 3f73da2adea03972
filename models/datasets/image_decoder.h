// Decodes the bytes of a PNG or JPEG file to a picture.
#pragma once

#include "models/datasets/mapped_file.h"
#include "models/datasets/picture.h"

namespace stratagem::datasets {

/// Returns red, green and blue. The file's first bytes decide its format. Like torchvision's
/// ImageFolder, drops an alpha channel and ignores EXIF's orientation. Throws
/// std::invalid_argument, "--data: FILE: reason", for another format, a damaged or truncated file,
/// and for more than 178,956,970 pixels (Pillow's limit).
Picture decode_image(const MappedFile& file);

}  // namespace stratagem::datasets
