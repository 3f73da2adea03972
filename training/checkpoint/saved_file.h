// What torch.save wrote: a value, and the storages that its tensors lie in. Both of its formats are
// read: the zip archive, and the sequence of pickles that it wrote before PyTorch 1.6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "training/checkpoint/pickled_value.h"
#include "training/checkpoint/zip_archive.h"

namespace stratagem::checkpoint {

class SavedFile {
 public:
  /// Throws std::invalid_argument, in one line, for what is neither, or of another byte order.
  /// `bytes` outlive it.
  explicit SavedFile(std::span<const std::uint8_t> bytes);

  const Value& value() const { return value_; }

  /// The bytes of a tensor's storage, until the next call. Throws std::invalid_argument where it is
  /// missing, where its size is not that of its elements, and where it is compressed and has more
  /// than `most` bytes.
  std::span<const std::uint8_t> storage(const PickledTensor& tensor, std::size_t most);

 private:
  void read_archive(std::span<const std::uint8_t> bytes);
  void read_pickles(std::span<const std::uint8_t> bytes);
  std::span<const std::uint8_t> unpacked(const ZipRecord& record, std::size_t most);

  Value value_;
  std::map<std::string, ZipRecord, std::less<>> records_;  // of the archive
  std::string folder_;                                     // before the names of its records
  std::map<std::string, std::span<const std::uint8_t>, std::less<>> storages_;  // of the old format
  const ZipRecord* inflated_from_ = nullptr;
  std::vector<std::uint8_t> inflated_;
};

}  // namespace stratagem::checkpoint
