#include "training/image_writer.h"

#include <algorithm>

namespace stratagem::training {

ImageWriter::ImageWriter(const datasets::SampleFormat& format, const ImageTransform& transform,
                         std::int64_t channels)
    : format_(format),
      transform_(transform),
      pixels_(static_cast<std::size_t>(format.height * format.width)),
      table_(format.kind == datasets::SampleKind::image ? static_cast<std::size_t>(channels) : 0) {
  for (std::size_t channel = 0; channel < table_.size(); ++channel) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const float value = static_cast<float>(byte) / 255;
      table_[channel][byte] =
          (value - transform_.mean.at(channel)) / transform_.deviation.at(channel);
    }
  }
}

void ImageWriter::write(std::span<const std::uint8_t> bytes, datasets::RandomBits random,
                        std::span<float> out) const {
  const std::int64_t shift = transform_.shift;
  const std::int64_t down = shift == 0 ? 0 : random.below(2 * shift + 1) - shift;
  const std::int64_t right = shift == 0 ? 0 : random.below(2 * shift + 1) - shift;
  const bool mirrored = transform_.mirror && random.below(2) == 1;
  const std::int64_t height = format_.height;
  const std::int64_t width = format_.width;
  const std::size_t channels = table_.size();
  const std::size_t between = transform_.channels_last ? channels : 1;  // a channel's stride
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::uint8_t* image = bytes.data() + (format_.channels == 1 ? 0 : channel * pixels_);
    const std::array<float, 256>& values = table_[channel];
    float* next = out.data() + channel * (transform_.channels_last ? 1 : pixels_);
    const auto put = [&](std::uint8_t byte) {
      *next = values[byte];
      next += between;
    };
    // Columns [first, last) of the row come from the image; the others are black.
    const std::int64_t first = std::max<std::int64_t>(right, 0);
    const std::int64_t last = width + std::min<std::int64_t>(right, 0);
    for (std::int64_t row = 0; row < height; ++row) {
      const std::int64_t from = row - down;
      if (from < 0 || from >= height) {
        for (std::int64_t column = 0; column < width; ++column) put(0);
        continue;
      }
      const std::uint8_t* line = image + from * width;
      for (std::int64_t column = 0; column < first; ++column) put(0);
      if (mirrored) {
        for (std::int64_t column = first; column < last; ++column) {
          put(line[width - 1 - (column - right)]);
        }
      } else {
        for (std::int64_t column = first; column < last; ++column) put(line[column - right]);
      }
      for (std::int64_t column = last; column < width; ++column) put(0);
    }
  }
}

}  // namespace stratagem::training
