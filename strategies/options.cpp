#include "strategies/options.h"

namespace stratagem::strategies {

std::vector<std::string> option_names(std::initializer_list<std::span<const char* const>> groups) {
  std::vector<std::string> names;
  for (const auto group : groups) names.insert(names.end(), group.begin(), group.end());
  return names;
}

}  // namespace stratagem::strategies
