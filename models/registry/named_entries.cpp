#include "models/registry/named_entries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace stratagem::models {

namespace {

std::string_view without_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;  // the row above `row`
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> next(b.size() + 1, i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = row[j] + (a[i] == b[j] ? 0 : 1);
      next[j + 1] = std::min({replaced, row[j + 1] + 1, next[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
      }
    }
    before = std::exchange(row, std::move(next));
  }
  return row[b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string_view given = without_dashes(name);
  if (given.empty()) return "";
  const std::string* best = nullptr;
  std::size_t smallest = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::string_view other = without_dashes(candidate);
    const std::size_t distance = edit_distance(given, other);
    if (distance >= smallest || !other.starts_with(given.front())) continue;
    smallest = distance;
    best = &candidate;
  }
  constexpr std::size_t shortest_part = 4;
  for (const std::string& candidate : candidates) {
    if (best != nullptr || given.size() < shortest_part) break;
    if (candidate.find(given) != std::string::npos) best = &candidate;
  }
  return best == nullptr ? "" : *best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const std::string found = nearest(name, candidates);
  return found.empty() ? std::string(otherwise) : fmt::format(": did you mean \"{}\"?", found);
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& choices) {
  return fmt::format("unknown {} \"{}\"{} choices: {}", kind, name,
                     did_you_mean(name, choices, ";"), fmt::join(choices, ", "));
}

std::vector<std::string>& registration_errors() {
  static std::vector<std::string> errors;
  return errors;
}

}  // namespace stratagem::models
