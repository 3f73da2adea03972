#include "strategies/registry.h"

#include <utility>

namespace stratagem::strategies {

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
