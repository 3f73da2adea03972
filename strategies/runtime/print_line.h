// Prints a line to a stream that may be full or closed.
#pragma once

#include <cstdio>
#include <string>

namespace stratagem::runtime {

/// Never throws: a loss of output must not end the work that it reports. The stream keeps its
/// error, which run_main() reports for the standard output.
inline void print_line(std::FILE* out, const std::string& line) noexcept {
  std::fwrite(line.data(), 1, line.size(), out);
  std::fputc('\n', out);
  std::fflush(out);
}

}  // namespace stratagem::runtime
