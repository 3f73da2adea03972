#include "reports/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>

#include "reports/write_all.h"

namespace stratagem::reports {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int code) {
  throw std::system_error(
      code, std::generic_category(),
      "cannot write " + path + " (choose a file in an existing, writable folder)");
}

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(::open(path.c_str(), flags, 0666)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

struct Target {
  fs::path path;          // with symbolic links followed
  bool in_place = false;  // a device or a pipe
};

Target resolve(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) fail(path, errno);
    std::error_code ignored;
    const fs::path link = fs::read_symlink(path, ignored);
    return {link.empty() ? fs::path(path) : fs::path(path).parent_path() / link, false};
  }
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(status.st_mode)) return {path, true};
  return {fs::canonical(path), false};
}

// The process number distinguishes two runs that write into one folder.
fs::path beside(const fs::path& target) {
  return target.parent_path() / (".stratagem-" + std::to_string(::getpid()) + ".tmp");
}

void write_in_place(const std::string& path, const fs::path& target, std::string_view text) {
  const File file(target.string(), O_WRONLY | O_CLOEXEC);
  if (!file.is_open()) fail(path, errno);
  if (const int code = write_all(file.descriptor(), text); code != 0) fail(path, code);
}

void create(const std::string& path, const fs::path& temporary, std::string_view text) {
  ::unlink(temporary.c_str());
  const File file(temporary.string(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
  if (!file.is_open()) fail(path, errno);
  int code = write_all(file.descriptor(), text);
  if (code == 0 && ::fsync(file.descriptor()) != 0) code = errno;
  if (code != 0) {
    ::unlink(temporary.c_str());
    fail(path, code);
  }
}

void flush_folder(const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const File file(folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file.is_open()) ::fsync(file.descriptor());
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  if (path == "-") {
    if (const int code = write_all(STDOUT_FILENO, text); code != 0) {
      fail("the standard output", code);
    }
    return;
  }
  const Target target = resolve(path);
  if (target.in_place) {
    write_in_place(path, target.path, text);
    return;
  }
  const fs::path temporary = beside(target.path);
  create(path, temporary, text);
  if (::rename(temporary.c_str(), target.path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    fail(path, code);
  }
  flush_folder(target.path);
}

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (path.empty() || path.back() == '/') {
    fail(path.empty() ? "\"\"" : path, path.empty() ? ENOENT : EISDIR);
  }
  const Target target = resolve(path);
  if (target.in_place) {
    write_in_place(path, target.path, "");
    return;
  }
  const fs::path temporary = beside(target.path);
  create(path, temporary, "");
  ::unlink(temporary.c_str());
}

void check_outputs(const std::vector<std::string>& paths) {
  std::set<fs::path> seen;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    check_writable(path);
    if (path == "-") continue;
    const Target target = resolve(path);
    if (target.in_place || seen.insert(fs::weakly_canonical(fs::absolute(target.path))).second)
      continue;
    throw std::invalid_argument("two outputs share " + path + "; give each its own file");
  }
}

}  // namespace stratagem::reports
