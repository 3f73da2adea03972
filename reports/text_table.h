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

/// Lines without trailing blanks, header first. Columns with empty cells throughout are left out;
/// `width` 0 is unlimited. When even the two most important columns are too wide, the widest
/// left-aligned one is cut at its front, where names agree.
std::string render_table(std::vector<TextColumn> columns, int width);

/// Returns a number with so many significant digits, trailing zeros included, without an exponent.
std::string significant(double value, int digits = 3);

/// Characters on a terminal, of UTF-8 text without wide or combining ones.
std::size_t display_width(const std::string& text);

}  // namespace stratagem::reports
