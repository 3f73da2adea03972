#include "models/datasets/image_decoder.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "models/datasets/jpeg_decoder.h"

namespace stratagem::datasets {
namespace {

constexpr std::int64_t most_pixels = 178'956'970;

[[noreturn]] void refuse_image(const MappedFile& file, const std::string& reason) {
  throw std::invalid_argument(fmt::format("--data: {}: {}", file.path().string(), reason));
}

/// Makes an empty picture; refuses more pixels than `most_pixels`.
Picture picture_of(const MappedFile& file, std::int64_t height, std::int64_t width) {
  if (height * width > most_pixels) {
    refuse_image(file, fmt::format("has {}x{} pixels, more than {}", width, height, most_pixels));
  }
  return {.height = height, .width = width};
}

/// Frees libpng's simplified reader on every path.
struct PngImage {
  png_image image{};

  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

Picture decode_png(const MappedFile& file) {
  PngImage png;
  const auto require = [&](int read) {
    if (read != 0 && !PNG_IMAGE_FAILED(png.image)) return;
    refuse_image(file, fmt::format("is a damaged PNG file: {}", png.image.message));
  };
  require(png_image_begin_read_from_memory(&png.image, file.bytes().data(), file.bytes().size()));
  Picture picture = picture_of(file, png.image.height, png.image.width);
  // The format has alpha, because without it libpng blends the picture with a background.
  png.image.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t>& bytes = picture.bytes;
  bytes.resize(PNG_IMAGE_SIZE(png.image));
  require(png_image_finish_read(&png.image, nullptr, bytes.data(), 0, nullptr));
  auto next = bytes.begin();
  for (auto pixel = bytes.begin(); pixel != bytes.end(); pixel += 4) {
    next = std::copy_n(pixel, 3, next);
  }
  bytes.erase(next, bytes.end());
  return picture;
}

Picture decode_jpeg(const MappedFile& file) {
  JpegDecoder jpeg(file.bytes());
  const auto require = [&](bool read) {
    if (!read) refuse_image(file, fmt::format("is a damaged JPEG file: {}", jpeg.error()));
  };
  require(jpeg.read_header());
  Picture picture = picture_of(file, jpeg.height(), jpeg.width());
  picture.bytes.resize(static_cast<std::size_t>(3 * picture.height * picture.width));
  require(jpeg.read_pixels(picture.bytes));
  return picture;
}

bool begins_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> wanted) {
  return bytes.size() >= wanted.size() && std::ranges::equal(bytes.first(wanted.size()), wanted);
}

}  // namespace

Picture decode_image(const MappedFile& file) {
  constexpr std::array<std::uint8_t, 8> png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<std::uint8_t, 3> jpeg = {0xff, 0xd8, 0xff};
  if (begins_with(file.bytes(), png)) return decode_png(file);
  if (begins_with(file.bytes(), jpeg)) return decode_jpeg(file);
  refuse_image(file, "is neither a PNG nor a JPEG file");
}

}  // namespace stratagem::datasets
