// Compares requested sizes with the memory of this machine.
#pragma once

#include <string>

namespace stratagem::runtime {

/// Throws std::invalid_argument, in one line that begins with `option`, if `bytes` exceed the
/// machine's memory.
void require_memory(double bytes, const std::string& option);

}  // namespace stratagem::runtime
