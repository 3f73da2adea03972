#include "models/datasets/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace stratagem::datasets {
namespace {

/// Returns why a file cannot be opened, with a remedy.
std::string reason_of(const std::filesystem::path& path, int error) {
  const std::filesystem::path packed = path.string() + ".gz";
  std::error_code ignored;
  if (error == ENOENT && std::filesystem::exists(packed, ignored)) {
    return fmt::format("only the compressed file exists; run: gunzip {}", packed.string());
  }
  return std::strerror(error);
}

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, const char* option) : path_(path) {
  const auto refuse = [&](const std::string& reason) {
    throw std::invalid_argument(fmt::format("{}{}: {}", option, path.string(), reason));
  };
  const Descriptor file(path);
  if (file.number() < 0) refuse(reason_of(path, errno));
  struct stat status {};
  if (fstat(file.number(), &status) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse("is not a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) refuse("is empty");
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) refuse(std::strerror(errno));
  bytes_ = {static_cast<const std::uint8_t*>(address), size};
}

MappedFile::~MappedFile() { munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size()); }

}  // namespace stratagem::datasets
