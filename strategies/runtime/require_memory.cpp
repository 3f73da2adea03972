#include "strategies/runtime/require_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>

namespace stratagem::runtime {

void require_memory(double bytes, const std::string& option) {
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (bytes <= memory) return;
  constexpr double gib = 1024.0 * 1024 * 1024;
  throw std::invalid_argument(fmt::format(
      "{}: needs {:.1f} GiB of memory, this machine has {:.1f} GiB; use a smaller value", option,
      bytes / gib, memory / gib));
}

}  // namespace stratagem::runtime
