// The strategies by name. A strategy registers itself in its own file, before main or when its
// plug-in is loaded at start. This file has no torch, so that the command line can list and check
// strategies without a tensor.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry/named_entries.h"
#include "strategies/plan.h"

namespace stratagem::models {
struct ModelEntry;
}  // namespace stratagem::models

namespace stratagem::strategies {

class Strategy;
struct StrategyContext;

struct StrategyEntry {
  std::string name = {};
  std::string summary = {};
  /// The options beyond the common ones that this strategy reads, in snake_case.
  std::vector<std::string> options = {};
  /// It spreads over all the job's devices; otherwise it uses one of them.
  bool multi_device = false;
  /// The dimensions of the mesh that it can use. Each replica (data), each part of the positions
  /// (context) and each part of a layer (tensor) has its own ranks.
  std::vector<std::string> dimensions = {"pipeline"};
  /// The outline of the plan that make()'s strategy runs and predictions simulate. An entry with
  /// make() needs one.
  Outline outline = {};
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make = {};
  /// Returns whether it can train a model; empty: it trains every model.
  std::function<bool(const models::ModelEntry&)> can_train = {};
  /// Throws std::invalid_argument, in one line, for options that do not fit the number of devices;
  /// may be empty.
  std::function<void(const StrategyOptions&, int devices)> check = {};
  /// One process drives all its devices, whatever the mesh.
  bool one_process = false;
  /// The ranks that share layers also share a sample's positions.
  bool shares_sequence = false;
  /// A row's dimensions if no mesh is given; empty: all of them.
  std::vector<std::string> usual_dimensions = {};
  /// The state that it shards over replicas. If unset, the option "shard" decides.
  std::optional<schedules::Sharded> shards = {};

  bool reads(std::string_view option) const {
    return std::ranges::find(options, option) != options.end();
  }
  bool spreads_over(std::string_view dimension) const {
    return std::ranges::find(dimensions, dimension) != dimensions.end();
  }
  /// Returns the dimensions that it uses without --mesh.
  const std::vector<std::string>& usually_over() const {
    return usual_dimensions.empty() ? dimensions : usual_dimensions;
  }
  bool usually_spreads_over(std::string_view dimension) const {
    return std::ranges::find(usually_over(), dimension) != usually_over().end();
  }

  /// Returns the missing part without which it cannot be registered, or an empty string.
  std::string lacks() const { return make && !outline ? "an outline of its plan" : ""; }
  static models::Registry<StrategyEntry>& registry();
};

const StrategyEntry& find_strategy(const std::string& name);
std::vector<std::string> strategy_names();

}  // namespace stratagem::strategies
