#include "strategies/registry.h"

#include <algorithm>
#include <utility>

namespace stratagem::strategies {

bool StrategyEntry::reads(std::string_view option) const {
  return std::ranges::find(options, option) != options.end();
}

bool StrategyEntry::spreads_over(std::string_view dimension) const {
  return std::ranges::find(dimensions, dimension) != dimensions.end();
}

models::Registry<StrategyEntry>& strategy_registry() {
  static models::Registry<StrategyEntry> strategies("strategy");
  return strategies;
}

const StrategyEntry& find_strategy(const std::string& name) {
  return strategy_registry().find(name);
}

std::vector<std::string> strategy_names() { return strategy_registry().names(); }

StrategyRegistration::StrategyRegistration(StrategyEntry entry) {
  models::register_entry(strategy_registry(), std::move(entry));
}

}  // namespace stratagem::strategies
