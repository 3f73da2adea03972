#include "reports/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stratagem::reports {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest_cut = 8;

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::size_t column_width(const TextColumn& column) {
  std::size_t width = display_width(column.header);
  for (const std::string& cell : column.cells) width = std::max(width, display_width(cell));
  return width;
}

std::size_t table_width(const std::vector<TextColumn>& columns) {
  std::size_t width = 0;
  for (const TextColumn& column : columns) width += column_width(column) + (width == 0 ? 0 : gap);
  return width;
}

bool is_empty(const TextColumn& column) {
  return std::all_of(column.cells.begin(), column.cells.end(),
                     [](const std::string& cell) { return cell.empty(); });
}

std::string cut_front(const std::string& text, std::size_t width) {
  std::size_t excess = display_width(text);
  if (excess <= width) return text;
  excess -= width - 1;
  std::size_t position = 0;
  while (excess > 0) {
    ++position;
    while (position < text.size() && is_continuation(text[position])) ++position;
    --excess;
  }
  return "…" + text.substr(position);
}

void fit(std::vector<TextColumn>& columns, std::size_t width) {
  const auto less = [](const TextColumn& a, const TextColumn& b) {
    return a.importance < b.importance;
  };
  while (columns.size() > 2 && table_width(columns) > width) {
    columns.erase(std::min_element(columns.begin(), columns.end(), less));
  }
  const std::size_t needed = table_width(columns);
  if (needed <= width) return;
  for (TextColumn& column : columns) {
    if (!column.right_aligned) {
      const std::size_t own = column_width(column);
      const std::size_t excess = std::min(needed - width, own);
      for (std::string& cell : column.cells) {
        cell = cut_front(cell, std::max(narrowest_cut, own - excess));
      }
      return;
    }
  }
}

std::string render_line(const std::vector<TextColumn>& columns, std::size_t row) {
  std::string line;
  for (const TextColumn& column : columns) {
    if (&column != &columns.front()) line += std::string(gap, ' ');
    const std::string& cell = row == 0 ? column.header : column.cells[row - 1];
    const std::string padding(column_width(column) - display_width(cell), ' ');
    line += column.right_aligned ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

std::string render_table(std::vector<TextColumn> columns, int width) {
  std::erase_if(columns, is_empty);
  if (columns.empty()) return "";
  if (width > 0) fit(columns, static_cast<std::size_t>(width));
  std::string text;
  for (std::size_t row = 0; row <= columns.front().cells.size(); ++row) {
    text += render_line(columns, row);
  }
  return text;
}

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:g}", value);
  constexpr int most_decimals = 12;
  const std::string rounded = fmt::format("{:.{}e}", value, digits - 1);
  const int exponent = std::stoi(rounded.substr(rounded.find('e') + 1));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - exponent, 0, most_decimals));
}

}  // namespace stratagem::reports
