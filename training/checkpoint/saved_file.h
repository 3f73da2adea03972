// A file of torch.save: a value and the storages of its tensors. It reads both formats: the zip
// archive and the sequence of pickles from before PyTorch 1.6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "training/checkpoint/pickled_value.h"
#include "training/checkpoint/zip_archive.h"

namespace stratagem::checkpoint {

class SavedFile {
 public:
  /// Throws std::invalid_argument, in one line, for any other format or byte order. `bytes` must
  /// outlive it.
  explicit SavedFile(std::span<const std::uint8_t> bytes);

  const Value& value() const { return value_; }

  /// Returns the bytes of a tensor's storage, valid until the next call. Throws
  /// std::invalid_argument if it is missing, if its size differs from that of its elements, if its
  /// bytes do not have their checksum, or if it is compressed and has more than `most` bytes.
  std::span<const std::uint8_t> storage(const PickledTensor& tensor, std::size_t most);

 private:
  void read_archive(std::span<const std::uint8_t> bytes);
  void read_pickles(std::span<const std::uint8_t> bytes);
  std::span<const std::uint8_t> unpacked(const ZipRecord& record, std::size_t most);

  Value value_;
  std::map<std::string, ZipRecord, std::less<>> records_;  // the archive's
  std::string folder_;                                     // the prefix of the records' names
  std::map<std::string, std::span<const std::uint8_t>, std::less<>> storages_;  // the old format's
  std::set<const ZipRecord*> intact_;  // those whose checksum was compared
  const ZipRecord* inflated_from_ = nullptr;
  std::vector<std::uint8_t> inflated_;
};

}  // namespace stratagem::checkpoint
