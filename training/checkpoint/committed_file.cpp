#include "training/checkpoint/committed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace stratagem::checkpoint {

std::filesystem::path CommittedFile::partial_of(const std::filesystem::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".partial");
}

CommittedFile::CommittedFile(std::filesystem::path path, Flush flush)
    : path_(std::move(path)),
      partial_(partial_of(path_)),
      flush_(std::move(flush)),
      descriptor_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail();
}

CommittedFile::~CommittedFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

void CommittedFile::write(const void* data, std::size_t size) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(descriptor_, next, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    next += count;
    size -= static_cast<std::size_t>(count);
  }
}

void CommittedFile::commit() {
  if (flush_(descriptor_) != 0) fail();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail();
  ::close(std::exchange(descriptor_, -1));
  const std::filesystem::path parent = path_.has_parent_path() ? path_.parent_path() : ".";
  const int folder = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail();
  const bool flushed = flush_(folder) == 0;
  ::close(folder);
  if (!flushed) fail();
}

void CommittedFile::fail() const {
  throw std::system_error(errno, std::generic_category(), "cannot write " + path_.string());
}

}  // namespace stratagem::checkpoint
