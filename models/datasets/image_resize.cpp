#include "models/datasets/image_resize.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace stratagem::datasets {
namespace {

constexpr int precision =
    22;  // bits of a weight behind the point: 32 - 8 of a pixel - 2 spare ones

/// The input pixels whose weighted mean is one pixel of the result.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights = {};
};

/// Rounds to the nearest integer, halves upwards, as Pillow does.
std::int64_t nearest_whole(double value) {
  return static_cast<std::int64_t>(std::floor(0.5 + value));
}

/// Returns pixels [first, first + count) of a line resized from `from` to `to` pixels.
std::vector<Taps> taps_of(std::int64_t from, std::int64_t to, std::int64_t first,
                          std::int64_t count) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t place = first; place < first + count; ++place) {
    const double centre = (static_cast<double>(place) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(nearest_whole(centre - support), 0);
    const auto end = std::min(nearest_whole(centre + support), from);
    std::vector<double> exact;
    double sum = 0;
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      const double distance =
          std::abs((static_cast<double>(pixel) - centre + 0.5) * (1.0 / support));
      exact.push_back(std::max(1.0 - distance, 0.0));
      sum += exact.back();
    }
    Taps& taps = all.emplace_back(Taps{.first = begin});
    for (const double weight : exact) {
      taps.weights.push_back(
          static_cast<std::int32_t>(nearest_whole(weight / sum * (1 << precision))));
    }
  }
  return all;
}

/// Returns the weighted mean of pixels that lie `step` bytes apart.
std::uint8_t mean(const Taps& taps, const std::uint8_t* pixels, std::int64_t step) {
  std::int32_t sum = 1 << (precision - 1);
  for (const std::int32_t weight : taps.weights) {
    sum += *pixels * weight;
    pixels += step;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
}

/// Returns where the middle begins: Python's round((whole - part) / 2.0), halves to even.
std::int64_t middle(std::int64_t whole, std::int64_t part) {
  return std::llrint(static_cast<double>(whole - part) / 2.0);
}

}  // namespace

Picture resized_to_square(const Picture& picture, std::int64_t size) {
  const std::int64_t height = picture.height;
  const std::int64_t width = picture.width;
  const std::int64_t channels = picture.channels;
  const std::int64_t shorter = std::min(height, width);
  const std::int64_t new_height = size * height / shorter;
  const std::int64_t new_width = size * width / shorter;
  const std::vector<Taps> columns = taps_of(width, new_width, middle(new_width, size), size);
  const std::vector<Taps> rows = taps_of(height, new_height, middle(new_height, size), size);

  // The first pass covers only the lines that the middle needs.
  const std::int64_t first_line = rows.front().first;
  const std::int64_t last_line = rows.back().first + std::ssize(rows.back().weights);
  std::vector<std::uint8_t> narrow(
      static_cast<std::size_t>((last_line - first_line) * size * channels));
  auto next = narrow.begin();
  for (std::int64_t line = first_line; line < last_line; ++line) {
    for (const Taps& taps : columns) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const auto start = ((line * width) + taps.first) * channels + channel;
        *next++ = mean(taps, picture.bytes.data() + start, channels);
      }
    }
  }
  Picture square{.height = size, .width = size, .channels = channels};
  const std::int64_t line_bytes = size * channels;
  square.bytes.reserve(static_cast<std::size_t>(size * line_bytes));
  for (const Taps& taps : rows) {
    const std::uint8_t* start = narrow.data() + (taps.first - first_line) * line_bytes;
    for (std::int64_t byte = 0; byte < line_bytes; ++byte) {
      square.bytes.push_back(mean(taps, start + byte, line_bytes));
    }
  }
  return square;
}

Picture grey(const Picture& picture) {
  Picture made{.height = picture.height, .width = picture.width, .channels = 1};
  made.bytes.reserve(picture.bytes.size() / 3);
  for (std::size_t at = 0; at < picture.bytes.size(); at += 3) {
    const std::uint32_t luma = picture.bytes[at] * 19595U + picture.bytes[at + 1] * 38470U +
                               picture.bytes[at + 2] * 7471U + 0x8000U;
    made.bytes.push_back(static_cast<std::uint8_t>(luma >> 16U));
  }
  return made;
}

}  // namespace stratagem::datasets
