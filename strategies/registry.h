// The strategies by name. A strategy registers itself in its own file; the registry is fixed
// before main. Torch-free, so that the command line can list and check without touching a tensor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/registry_base.h"

namespace stratagem::models {
struct ModelEntry;
}

namespace stratagem::strategies {

class Strategy;
struct StrategyContext;

struct StrategyEntry {
  std::string name;
  std::string summary;
  /// Options beyond the common ones that this strategy reads, in snake_case.
  std::vector<std::string> options;
  /// Whether it spreads over all the job's devices; otherwise it uses one of them.
  bool multi_device = false;
  /// The dimensions of the mesh that it spreads over; each replica (data), and each part of a layer
  /// (tensor), has ranks of its own.
  std::vector<std::string> dimensions = {"pipeline"};
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make;
  /// Empty: every model.
  std::function<bool(const models::ModelEntry&)> can_train = {};
};

models::Registry<StrategyEntry>& strategy_registry();
const StrategyEntry& find_strategy(const std::string& name);
std::vector<std::string> strategy_names();

/// A static object of this type adds an entry before main.
struct StrategyRegistration {
  explicit StrategyRegistration(StrategyEntry entry);
};

}  // namespace stratagem::strategies
