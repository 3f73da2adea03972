#include "training/image_writer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace stratagem::training::image_writer_test {
namespace {

using datasets::RandomBits;
using datasets::SampleFormat;
using datasets::SampleKind;

constexpr std::int64_t side = 6;
constexpr SampleFormat two_channels{
    .kind = SampleKind::image, .channels = 2, .height = side, .width = side, .classes = 2};

/// Byte n is n + 1, so that none is black.
std::vector<std::uint8_t> numbered() {
  std::vector<std::uint8_t> bytes(2 * side * side);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

/// Values are the bytes themselves.
ImageTransform plain() {
  return {.mean = {}, .deviation = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F}, .channels_last = false};
}

std::vector<float> written(const ImageTransform& transform, std::uint64_t number = 0) {
  const ImageWriter writer(two_channels, transform, 2);
  std::vector<float> out(writer.floats(), -1);
  writer.write(numbered(), RandomBits(0, number), out);
  return out;
}

float at(const std::vector<float>& image, std::int64_t channel, std::int64_t row,
         std::int64_t column) {
  return image.at(static_cast<std::size_t>((channel * side + row) * side + column));
}

TEST(ImageWriter, NormalisesEachChannel) {
  const auto image =
      written({.mean = {0.5F, 0.25F, 0}, .deviation = {0.5F, 0.25F, 1}, .channels_last = false});
  EXPECT_FLOAT_EQ(image.front(), (1 / 255.0F - 0.5F) / 0.5F);
  EXPECT_FLOAT_EQ(image.back(), (72 / 255.0F - 0.25F) / 0.25F);
}

TEST(ImageWriter, PutsTheChannelsLast) {
  ImageTransform transform = plain();
  const auto first = written(transform);
  transform.channels_last = true;
  const auto last = written(transform);
  for (std::size_t pixel = 0; pixel < side * side; ++pixel) {
    EXPECT_FLOAT_EQ(last.at(2 * pixel), first.at(pixel));
    EXPECT_FLOAT_EQ(last.at(2 * pixel + 1), first.at(side * side + pixel));
  }
}

// What was at a place is at the shifted, perhaps mirrored one, and what comes from outside is
// black.
TEST(ImageWriter, ShiftsAndMirrorsTheWholeImage) {
  ImageTransform transform = plain();
  transform.shift = 2;
  transform.mirror = true;
  const auto original = written(plain());
  std::set<std::vector<float>> kinds;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const auto image = written(transform, number);
    kinds.insert(image);
    int fits = 0;
    for (std::int64_t down = -2; down <= 2; ++down) {
      for (std::int64_t right = -2; right <= 2; ++right) {
        for (const bool mirrored : {false, true}) {
          bool same = true;
          for (std::int64_t place = 0; place < 2 * side * side; ++place) {
            const std::int64_t row = place / side % side - down;
            const std::int64_t column = place % side - right;
            const bool outside = row < 0 || row >= side || column < 0 || column >= side;
            const float expected = outside ? 0
                                           : at(original, place / (side * side), row,
                                                mirrored ? side - 1 - column : column);
            same = same && std::abs(image.at(static_cast<std::size_t>(place)) - expected) < 1e-3F;
          }
          fits += same ? 1 : 0;
        }
      }
    }
    ASSERT_EQ(fits, 1) << number;
  }
  EXPECT_EQ(kinds.size(), 50U);
}

}  // namespace
}  // namespace stratagem::training::image_writer_test
