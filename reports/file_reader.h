// Reads a whole file as text, with an error that names it.
#pragma once

#include <string>

namespace stratagem::reports {

/// `expected` describes the file: "a results file". Throws std::system_error in one line if there
/// is no such file, if it is a folder, or if it cannot be read.
std::string read_file(const std::string& path, const std::string& expected);

}  // namespace stratagem::reports
