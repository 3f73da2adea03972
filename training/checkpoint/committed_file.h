// A file that exists whole or not at all, whatever ends the process or the machine: it is written
// under another name, flushed and renamed, and the folder is flushed.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <functional>

namespace stratagem::checkpoint {

class CommittedFile {
 public:
  /// Flushes a file as fsync(2) does.
  using Flush = std::function<int(int descriptor)>;

  /// Opens `.NAME.partial` in the same folder. Throws std::system_error, like the other methods.
  explicit CommittedFile(std::filesystem::path path, Flush flush = ::fsync);
  /// Removes the file unless it was committed.
  ~CommittedFile();
  CommittedFile(const CommittedFile&) = delete;
  CommittedFile& operator=(const CommittedFile&) = delete;

  void write(const void* data, std::size_t size);
  /// Makes the file visible under its name.
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
