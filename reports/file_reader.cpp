#include "reports/file_reader.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace stratagem::reports {

std::string read_file(const std::string& path, const std::string& expected) {
  const auto fail = [&](int code) {
    throw std::system_error(code, std::generic_category(),
                            "cannot read " + path + " (expected " + expected + ")");
  };
  // A folder opens like a file, and fails only when it is read.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(EISDIR);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(errno != 0 ? errno : EIO);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace stratagem::reports
