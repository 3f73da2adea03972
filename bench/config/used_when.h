// Lists when rows read an option: each condition once, with its words for help and messages.
#pragma once

#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "strategies/option.h"

namespace stratagem::bench {

/// The facts of a row that conditions test. It has the dimensions of the mesh that are usual for
/// its strategy, and those that --mesh adds.
class RowFacts {
 public:
  /// A strategy, model or schedule that the catalogue lacks is null.
  RowFacts(const Config& row, const Catalogue& catalogue);

  const Config& config;
  const strategies::StrategyEntry* strategy;
  const models::ModelEntry* model;
  const schedules::ScheduleEntry* schedule;

  /// Requires a strategy, like the functions below.
  bool has(const char* dimension) const;
  /// Returns whether ranks have the same layers: replicas, or ranks that share samples.
  bool has_replicas() const;
  bool shares_positions() const;
  bool exchanges_keys() const;
  bool shards_layers() const;
  bool layers_gather() const;
  /// Returns whether several ranks have copies of a layer's heads.
  bool copies_heads() const;
  /// Returns true for sharded layers without replicas, too: the check names a mesh with some.
  bool may_shard_state() const;
  bool shards_state() const;
  bool is_cut_by_count() const;
  bool is_cut_by_size() const;

 private:
  bool in_mesh(const char* dimension) const;
};

/// In rows that do not read an option, the option keeps its default and is not shown.
struct UsedWhen {
  bool (*holds)(const RowFacts& row) = nullptr;
  /// True if strategies list the option; rows of other strategies do not read it.
  bool of_strategies = false;
  /// Names the rows that read it: "--device cpu". Null: the strategies that list it.
  std::string (*users)(const Catalogue& catalogue) = nullptr;
  /// Names what a row of a strategy that lists it needs besides. Null: nothing.
  std::string (*besides)(const strategies::StrategyEntry& strategy) = nullptr;
  /// True if the general help has it instead of the help of strategies that list it.
  bool in_general_help = false;
};

const UsedWhen& condition(strategies::When when);

}  // namespace stratagem::bench
