#include "strategies/registry.h"

namespace stratagem::strategies {

models::Registry<StrategyEntry>& StrategyEntry::registry() {
  static models::Registry<StrategyEntry> strategies("strategy");
  return strategies;
}

const StrategyEntry& find_strategy(const std::string& name) {
  return StrategyEntry::registry().find(name);
}

std::vector<std::string> strategy_names() { return StrategyEntry::registry().names(); }

}  // namespace stratagem::strategies
