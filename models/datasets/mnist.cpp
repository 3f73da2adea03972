// MNIST's IDX files.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/datasets/mapped_file.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

constexpr std::uint32_t images_magic = 0x803;
constexpr std::uint32_t labels_magic = 0x801;
constexpr std::uint32_t digit_side = 28;
constexpr std::int64_t digits = 10;
constexpr std::size_t digit_bytes = std::size_t{digit_side} * digit_side;

/// Returns a number of a file's header.
std::uint32_t header_number(const MappedFile& file, std::size_t index) {
  const std::span<const std::uint8_t> bytes = file.bytes();
  if (bytes.size() < 4 * (index + 1)) {
    throw std::invalid_argument(
        fmt::format("--data: {}: ends within its header", file.path().string()));
  }
  std::uint32_t number = 0;
  for (const std::uint8_t byte : bytes.subspan(4 * index, 4)) number = number << 8U | byte;
  return number;
}

void require(const MappedFile& file, const char* what, std::uint64_t found, std::uint64_t wanted) {
  if (found == wanted) return;
  throw std::invalid_argument(
      fmt::format("--data: {}: {} is {}, expected {}", file.path().string(), what, found, wanted));
}

/// Returns the number of images in an image file.
std::uint64_t images_in(const MappedFile& file) {
  require(file, "its magic number", header_number(file, 0), images_magic);
  return header_number(file, 1);
}

class Mnist final : public Dataset {
 public:
  Mnist(const std::filesystem::path& folder, const std::string& prefix)
      : images_(folder / (prefix + "-images-idx3-ubyte")),
        labels_(folder / (prefix + "-labels-idx1-ubyte")),
        count_(images_in(images_)) {
    require(labels_, "its magic number", header_number(labels_, 0), labels_magic);
    require(images_, "the height", header_number(images_, 2), digit_side);
    require(images_, "the width", header_number(images_, 3), digit_side);
    require(images_, "its size in bytes", images_.bytes().size(),
            images_header + count_ * digit_bytes);
    require(labels_, "the number of labels", header_number(labels_, 1), count_);
    require(labels_, "its size in bytes", labels_.bytes().size(), labels_header + count_);
    require_labels();
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(count_); }
  Sample sample(std::int64_t index) const override {
    const auto number = static_cast<std::size_t>(index);
    return {.bytes = images_.bytes().subspan(images_header + number * digit_bytes, digit_bytes),
            .label = labels_.bytes()[labels_header + number]};
  }

 private:
  static constexpr std::size_t images_header = 16;
  static constexpr std::size_t labels_header = 8;

  void require_labels() const {
    const auto labels = labels_.bytes().subspan(labels_header);
    const auto wrong = std::ranges::find_if(labels, [](auto label) { return label >= digits; });
    if (wrong == labels.end()) return;
    throw std::invalid_argument(fmt::format("--data: {}: sample {} has label {}, expected 0 to {}",
                                            labels_.path().string(), wrong - labels.begin(), *wrong,
                                            digits - 1));
  }

  MappedFile images_;
  MappedFile labels_;
  std::size_t count_ = 0;
  SampleFormat format_{.kind = SampleKind::image,
                       .channels = 1,
                       .height = digit_side,
                       .width = digit_side,
                       .classes = digits};
};

/// Reads MNIST as published by LeCun, Cortes and Burges: train-images-idx3-ubyte and the other
/// three files, in IDX (big endian; magic 0x803 for images, 0x801 for labels).
Datasets mnist(const DatasetOptions& options) {
  return {.training = std::make_shared<Mnist>(options.path, "train"),
          .validation = nullptr,
          .test = std::make_shared<Mnist>(options.path, "t10k")};
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "mnist",
    .argument = "FOLDER",
    .summary = "the four IDX files of MNIST: 1x28x28, 10 classes",
    .kinds = {stratagem::datasets::SampleKind::image},
    .image_size = stratagem::datasets::digit_side,
    .make = stratagem::datasets::mnist});
