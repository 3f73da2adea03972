#include "models/registry/named_entries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace stratagem::models {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const auto found = std::ranges::min_element(
      candidates, {}, [&](const std::string& candidate) { return edit_distance(name, candidate); });
  return found == candidates.end() ? "" : *found;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& choices) {
  return fmt::format("unknown {} \"{}\": did you mean \"{}\"? choices: {}", kind, name,
                     nearest(name, choices), fmt::join(choices, ", "));
}

std::vector<std::string>& registration_errors() {
  static std::vector<std::string> errors;
  return errors;
}

}  // namespace stratagem::models
