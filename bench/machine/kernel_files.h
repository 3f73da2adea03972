// Short texts in the kernel's files. A file that cannot be read counts as empty.
#pragma once

#include <filesystem>
#include <string>

namespace stratagem::bench {

/// Returns the first line of a file, or `absent` if there is none.
std::string first_line(const std::filesystem::path& path, const std::string& absent = "");

/// Returns the value after the first "key ... : value" of /proc/cpuinfo and its like.
std::string field(const std::filesystem::path& path, const std::string& key);

/// Returns the number at the text's begin, or `absent` if there is none.
double number_or(const std::string& text, double absent);

}  // namespace stratagem::bench
