// Catalogue holds the entries of a build's registries. Options and grids are checked against a
// catalogue, so that tests can have small ones of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/registry/registry.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"

namespace stratagem::bench {

struct Catalogue {
  std::vector<strategies::StrategyEntry> strategies;
  std::vector<models::ModelEntry> models;
  std::vector<schedules::ScheduleEntry> schedules;
  std::vector<std::string> plugins = {};  // identities of the loaded plug-ins

  /// Returns nullptr for an unknown name.
  const strategies::StrategyEntry* strategy(std::string_view name) const;
  const models::ModelEntry* model(std::string_view name) const;
  const schedules::ScheduleEntry* schedule(std::string_view name) const;
};

/// Returns the entries that have registered themselves.
Catalogue registered_catalogue();

}  // namespace stratagem::bench
