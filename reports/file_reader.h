// A whole file as text, with an error that names it.
#pragma once

#include <string>

namespace stratagem::reports {

/// `expected` says what the file should be: "a results file". Throws std::system_error in one line
/// when there is no such file, when it is a folder, or when it cannot be read.
std::string read_file(const std::string& path, const std::string& expected);

}  // namespace stratagem::reports
