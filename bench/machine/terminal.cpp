#include "bench/machine/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace stratagem::bench {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

std::optional<int> terminal_width(std::FILE* out) {
  winsize size{};
  const bool known = ::ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::optional<int>(size.ws_col) : std::nullopt;
}

bool can_replace_lines(std::FILE* out) {
  const std::string_view terminal = environment("TERM");
  return ::isatty(fileno(out)) != 0 && !terminal.empty() && terminal != "dumb";
}

bool has_color(std::FILE* out) { return can_replace_lines(out) && environment("NO_COLOR").empty(); }

}  // namespace stratagem::bench
