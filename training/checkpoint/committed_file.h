// A file that is there whole or not at all, whatever ends the process or the machine: written
// aside, flushed, renamed, and the folder flushed.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>

namespace stratagem::checkpoint {

class CommittedFile {
 public:
  /// As fsync(2).
  using Flush = std::function<int(int descriptor)>;

  /// Opens the file aside, `.NAME.partial`. Throws std::system_error, as the other methods do.
  explicit CommittedFile(std::filesystem::path path, Flush flush = ::fsync);
  /// Removes what was not committed.
  ~CommittedFile();
  CommittedFile(const CommittedFile&) = delete;
  CommittedFile& operator=(const CommittedFile&) = delete;

  void write(const void* data, std::size_t size);
  /// From here on it exists.
  void commit();

  static std::filesystem::path partial_of(const std::filesystem::path& path);

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  Flush flush_;
  int descriptor_ = -1;
};

}  // namespace stratagem::checkpoint
