#include "bench/machine/kernel_files.h"

#include <fstream>

namespace stratagem::bench {

std::string first_line(const std::filesystem::path& path, const std::string& absent) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : absent;
}

std::string field(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

double number_or(const std::string& text, double absent) {
  try {
    return std::stod(text);
  } catch (const std::exception&) {
    return absent;
  }
}

}  // namespace stratagem::bench
