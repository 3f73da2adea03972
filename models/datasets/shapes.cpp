// Figures drawn in noise: a small network learns the set within minutes, and no formula solves it.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "models/datasets/random_bits.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

constexpr std::int64_t canvas_side = 32;
constexpr std::int64_t channels = 3;
constexpr std::size_t canvas_bytes = channels * canvas_side * canvas_side;

/// Returns whether a point belongs to a figure that fills the square from (-1, -1) to (1, 1); y
/// points down.
using Figure = bool (*)(float x, float y);

bool in_square(float x, float y) { return std::max(std::abs(x), std::abs(y)) <= 0.9F; }
bool in_disc(float x, float y) { return x * x + y * y <= 1; }

constexpr std::array<Figure, 10> figures = {
    [](float x, float y) { return in_disc(x, y); },
    [](float x, float y) { return in_disc(x, y) && x * x + y * y > 0.3F; },  // ring
    [](float x, float y) { return in_square(x, y); },
    [](float x, float y) { return in_square(x, y) && !in_square(x / 0.55F, y / 0.55F); },  // frame
    [](float x, float y) { return y <= 0.9F && std::abs(x) <= (y + 1) / 2; },   // triangle
    [](float x, float y) { return y >= -0.9F && std::abs(x) <= (1 - y) / 2; },  // on its tip
    [](float x, float y) {                                                      // plus
      return in_square(x, y) && std::min(std::abs(x), std::abs(y)) <= 0.3F;
    },
    [](float x, float y) {  // cross
      return in_square(x, y) && std::abs(std::abs(x) - std::abs(y)) <= 0.4F;
    },
    [](float x, float y) {  // lying bars
      return in_square(x, y) && std::abs(std::abs(y) - 0.6F) <= 0.3F;
    },
    [](float x, float y) {  // standing bars
      return in_square(x, y) && std::abs(std::abs(x) - 0.6F) <= 0.3F;
    },
};

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F)));
}

/// Draws a figure at a random place and size, lighter or darker than its noisy background.
void draw(Figure figure, RandomBits random, std::span<std::uint8_t> image) {
  constexpr float noise = 0.25F;
  const float radius = random.between(7, 12);
  const float centre_x = random.between(radius, canvas_side - radius);
  const float centre_y = random.between(radius, canvas_side - radius);
  std::array<float, channels> ground{};
  std::array<float, channels> colour{};
  const bool lighter = random.below(2) == 0;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const float dark = random.between(0.15F, 0.4F);
    const float light = random.between(0.6F, 0.85F);
    ground[channel] = lighter ? dark : light;
    colour[channel] = lighter ? light : dark;
  }
  std::size_t next = 0;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t row = 0; row < canvas_side; ++row) {
      for (std::int64_t column = 0; column < canvas_side; ++column) {
        const float x = (static_cast<float>(column) + 0.5F - centre_x) / radius;
        const float y = (static_cast<float>(row) + 0.5F - centre_y) / radius;
        const float value = figure(x, y) ? colour[channel] : ground[channel];
        image[next++] = to_byte(value + random.between(-noise, noise));
      }
    }
  }
}

class Shapes final : public Dataset {
 public:
  Shapes(std::int64_t first, std::int64_t count, std::uint64_t seed)
      : pixels_(static_cast<std::size_t>(count) * canvas_bytes) {
    for (std::int64_t index = 0; index < count; ++index) {
      RandomBits random(seed, static_cast<std::uint64_t>(first + index));
      const std::int64_t label = random.below(figures.size());
      labels_.push_back(static_cast<std::uint8_t>(label));
      draw(
          figures.at(static_cast<std::size_t>(label)), random,
          std::span(pixels_).subspan(static_cast<std::size_t>(index) * canvas_bytes, canvas_bytes));
    }
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Sample sample(std::int64_t index) const override {
    const auto number = static_cast<std::size_t>(index);
    return {.bytes = std::span(pixels_).subspan(number * canvas_bytes, canvas_bytes),
            .label = labels_.at(number)};
  }

 private:
  std::vector<std::uint8_t> pixels_;
  std::vector<std::uint8_t> labels_;
  SampleFormat format_{.kind = SampleKind::image,
                       .channels = channels,
                       .height = canvas_side,
                       .width = canvas_side,
                       .classes = figures.size()};
};

Datasets shapes(const DatasetOptions& options) {
  return drawn_sets(options, [&](std::int64_t first, std::int64_t count) {
    return std::make_shared<Shapes>(first, count, options.seed);
  });
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "shapes",
    .summary = "figures drawn in noise, 3x32x32, 10 classes",
    .kinds = {stratagem::datasets::SampleKind::image},
    .image_size = stratagem::datasets::canvas_side,
    .drawn = true,
    .make = stratagem::datasets::shapes});
