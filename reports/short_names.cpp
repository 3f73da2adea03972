#include "reports/short_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

namespace stratagem::reports {
namespace {

// The strategy and the model decide whether these are present, never an option's value.
constexpr std::array<std::string_view, 6> always_named = {"devices",  "batch", "image",
                                                          "sequence", "split", "schedule"};

std::vector<std::string> split_parts(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream stream(name);
  for (std::string part; std::getline(stream, part, '/');) parts.push_back(part);
  return parts;
}

// The model, second of the parts, has no key of its own.
std::string key_of(const std::vector<std::string>& parts, std::size_t index) {
  return index == 1 ? "model" : parts[index].substr(0, parts[index].find(':'));
}

}  // namespace

ShortNames shorten(std::span<const std::string> names) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> rows_with;
  std::vector<std::pair<std::string, std::string>> order;  // key, part
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    rows.push_back(split_parts(name));
    for (std::size_t index = 1; index < rows.back().size(); ++index) {
      const std::string key = key_of(rows.back(), index);
      if (values[key].empty()) order.emplace_back(key, rows.back()[index]);
      values[key].insert(rows.back()[index]);
      ++rows_with[key];
    }
  }
  const auto shared = [&](const std::string& key) {
    const bool structural = std::ranges::find(always_named, key) != always_named.end();
    return values[key].size() == 1 && (structural || rows_with[key] == names.size());
  };
  ShortNames result;
  for (const auto& [key, part] : order) {
    if (shared(key)) result.shared += (result.shared.empty() ? "" : "/") + part;
  }
  for (const std::vector<std::string>& parts : rows) {
    std::string& name = result.names.emplace_back(parts[0]);
    for (std::size_t index = 1; index < parts.size(); ++index) {
      if (!shared(key_of(parts, index))) name += "/" + parts[index];
    }
  }
  return result;
}

}  // namespace stratagem::reports
