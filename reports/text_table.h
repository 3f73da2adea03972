// A table of text that fits a width: columns that matter less are left out first.
#pragma once

#include <string>
#include <vector>

namespace stratagem::reports {

struct TextColumn {
  std::string header = {};
  bool right_aligned = true;
  int importance = 0;  // the least important column is left out first
  std::vector<std::string> cells = {};
};

/// Returns lines without trailing blanks, header first. Columns with empty cells throughout are
/// left out; `width` 0 is unlimited. If even the two most important columns are too wide, the
/// widest left-aligned one is cut at its front, where names agree.
std::string render_table(std::vector<TextColumn> columns, int width);

/// Returns a number with `digits` significant digits, trailing zeros included, no exponent.
std::string significant(double value, int digits = 3);

/// Returns the terminal columns of UTF-8 text without wide or combining characters.
std::size_t display_width(const std::string& text);

}  // namespace stratagem::reports
