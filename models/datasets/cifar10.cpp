// CIFAR-10's binary files.
#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/datasets/mapped_file.h"
#include "models/datasets/registry.h"

namespace stratagem::datasets {
namespace {

constexpr std::int64_t records = 10'000;  // records in a file
constexpr std::int64_t cifar_side = 32;
constexpr std::size_t image_bytes = 3 * cifar_side * cifar_side;
constexpr std::size_t record_bytes = 1 + image_bytes;
constexpr std::int64_t cifar_classes = 10;

class Cifar10 final : public Dataset {
 public:
  Cifar10(const std::filesystem::path& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      files_.push_back(std::make_unique<MappedFile>(folder / name));
      require_records(*files_.back());
    }
  }

  const SampleFormat& format() const override { return format_; }
  std::int64_t size() const override { return records * static_cast<std::int64_t>(files_.size()); }
  Sample sample(std::int64_t index) const override {
    const auto& file = *files_.at(static_cast<std::size_t>(index / records));
    const auto record = record_of(file, index % records);
    return {.bytes = record.subspan(1), .label = record.front()};
  }

 private:
  static std::span<const std::uint8_t> record_of(const MappedFile& file, std::int64_t number) {
    return file.bytes().subspan(static_cast<std::size_t>(number) * record_bytes, record_bytes);
  }

  static void require_records(const MappedFile& file) {
    constexpr std::size_t wanted = static_cast<std::size_t>(records) * record_bytes;
    if (file.bytes().size() != wanted) {
      throw std::invalid_argument(fmt::format("--data: {}: has {} bytes, expected {}",
                                              file.path().string(), file.bytes().size(), wanted));
    }
    for (std::int64_t number = 0; number < records; ++number) {
      const std::uint8_t label = record_of(file, number).front();
      if (label < cifar_classes) continue;
      throw std::invalid_argument(
          fmt::format("--data: {}: record {} has label {}, expected 0 to {}", file.path().string(),
                      number, label, cifar_classes - 1));
    }
  }

  std::vector<std::unique_ptr<MappedFile>> files_;
  SampleFormat format_{.kind = SampleKind::image,
                       .channels = 3,
                       .height = cifar_side,
                       .width = cifar_side,
                       .classes = cifar_classes};
};

/// Reads CIFAR-10 (Krizhevsky 2009), the binary version: data_batch_1.bin to data_batch_5.bin and
/// test_batch.bin, each 10,000 records of a label and 3x32x32 pixels.
Datasets cifar10(const DatasetOptions& options) {
  const std::filesystem::path folder = options.path;
  const std::vector<std::string> training = {"data_batch_1.bin", "data_batch_2.bin",
                                             "data_batch_3.bin", "data_batch_4.bin",
                                             "data_batch_5.bin"};
  return {.training = std::make_shared<Cifar10>(folder, training),
          .validation = nullptr,
          .test = std::make_shared<Cifar10>(folder, std::vector<std::string>{"test_batch.bin"})};
}

}  // namespace
}  // namespace stratagem::datasets

STRATAGEM_REGISTER(stratagem::datasets::DatasetEntry{
    .name = "cifar10",
    .argument = "FOLDER",
    .summary = "the six binary files of CIFAR-10: 3x32x32, 10 classes",
    .kinds = {stratagem::datasets::SampleKind::image},
    .image_size = stratagem::datasets::cifar_side,
    .make = stratagem::datasets::cifar10});
