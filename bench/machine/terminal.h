// The abilities of the terminal that a program writes to.
#pragma once

#include <cstdio>
#include <optional>

namespace stratagem::bench {

/// Returns the columns of a terminal; nullopt if `out` is not one.
std::optional<int> terminal_width(std::FILE* out);

/// Returns whether a line on `out` can be replaced: `out` is a terminal, and TERM is neither unset
/// nor "dumb".
bool can_replace_lines(std::FILE* out);

/// Returns whether `out` may have colours and bold text: it is such a terminal, and the environment
/// variable NO_COLOR (no-color.org) is unset or empty.
bool has_color(std::FILE* out);

}  // namespace stratagem::bench
