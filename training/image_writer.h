// Converts the bytes of an image to a network's input: numbers around 0, shifted and mirrored at
// random for training (He et al. 2016, section 4.2).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/datasets/random_bits.h"

namespace stratagem::training {

struct ImageTransform {
  std::array<float, 3> mean{0.5F, 0.5F, 0.5F};  // the channels' means; their values are in [0, 1]
  std::array<float, 3> deviation{0.25F, 0.25F, 0.25F};
  std::int64_t shift = 0;  // the most pixels that an image shifts, each way; black fills the rest
  bool mirror = false;     // mirrors half of the images at random, left to right
  bool channels_last = true;
};

class ImageWriter {
 public:
  /// Writes images of `channels`; an image of one channel fills them all.
  ImageWriter(const datasets::SampleFormat& format, const ImageTransform& transform,
              std::int64_t channels);

  std::size_t floats() const { return pixels_ * table_.size(); }

  /// Writes [height, width, channels], or [channels, height, width]. `random` belongs to the image
  /// and this epoch.
  void write(std::span<const std::uint8_t> bytes, datasets::RandomBits random,
             std::span<float> out) const;

 private:
  datasets::SampleFormat format_;
  ImageTransform transform_;
  std::size_t pixels_;
  std::vector<std::array<float, 256>> table_;  // [channel][byte]
};

}  // namespace stratagem::training
