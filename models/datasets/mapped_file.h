// A read-only file in memory. Its pages are read on use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace stratagem::datasets {

class MappedFile {
 public:
  /// Throws std::invalid_argument: "FILE: reason" after the option that names the file.
  explicit MappedFile(const std::filesystem::path& path, const char* option = "--data: ");
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace stratagem::datasets
