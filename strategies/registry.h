// The strategies by name. A strategy registers itself in its own file, before main or when its
// plug-in is loaded at start. Torch-free, so that the command line can list and check without
// touching a tensor.
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
  /// Options beyond the common ones that this strategy reads, in snake_case.
  std::vector<std::string> options = {};
  /// Whether it spreads over all the job's devices; otherwise it uses one of them.
  bool multi_device = false;
  /// The dimensions of the mesh that it can spread over; each replica (data), and each part of a
  /// layer (tensor), has ranks of its own.
  std::vector<std::string> dimensions = {"pipeline"};
  /// Of the plan that make()'s strategy runs and predictions simulate. An entry with make() needs
  /// one.
  Outline outline = {};
  std::function<std::unique_ptr<Strategy>(const StrategyContext&)> make = {};
  /// Empty: every model.
  std::function<bool(const models::ModelEntry&)> can_train = {};
  /// Throws std::invalid_argument, in one line, for options that do not fit so many devices; may be
  /// empty.
  std::function<void(const StrategyOptions&, int devices)> check = {};
  /// Whether one process drives all its devices, whatever the mesh.
  bool one_process = false;
  /// Whether the ranks that share layers share a sample's positions, too.
  bool shares_sequence = false;
  /// Those that a row has where no mesh is given; empty: all of them.
  std::vector<std::string> usual_dimensions = {};
  /// The state that it shards over replicas. If unset, the option "shard" decides.
  std::optional<schedules::Sharded> shards = {};

  bool reads(std::string_view option) const {
    return std::ranges::find(options, option) != options.end();
  }
  bool spreads_over(std::string_view dimension) const {
    return std::ranges::find(dimensions, dimension) != dimensions.end();
  }
  /// The dimensions that it spreads over without --mesh.
  const std::vector<std::string>& usually_over() const {
    return usual_dimensions.empty() ? dimensions : usual_dimensions;
  }
  bool usually_spreads_over(std::string_view dimension) const {
    return std::ranges::find(usually_over(), dimension) != usually_over().end();
  }

  /// Why it cannot be registered; empty: it can.
  std::string lacks() const { return make && !outline ? "an outline of its plan" : ""; }
  static models::Registry<StrategyEntry>& registry();
};

const StrategyEntry& find_strategy(const std::string& name);
std::vector<std::string> strategy_names();

}  // namespace stratagem::strategies
