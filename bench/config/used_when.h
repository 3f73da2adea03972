// When rows read an option: each condition once, with its words for help and messages.
#pragma once

#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "strategies/option.h"

namespace stratagem::bench {

/// A row as conditions look at it. It has the dimensions of the mesh that are usual for its
/// strategy, and those that --mesh adds.
class RowFacts {
 public:
  /// Facts of names that the catalogue lacks are null.
  RowFacts(const Config& row, const Catalogue& catalogue);

  const Config& config;
  const strategies::StrategyEntry* strategy;
  const models::ModelEntry* model;
  const schedules::ScheduleEntry* schedule;

  /// Those that follow need a strategy.
  bool has(const char* dimension) const;
  bool has_replicas() const;
  bool shards_layers() const;
  /// Rows of sharded layers without replicas, too: the check names the mesh that has some.
  bool may_shard_state() const;
  bool shards_state() const;
  bool is_cut_by_count() const;
  bool is_cut_by_size() const;

 private:
  bool in_mesh(const char* dimension) const;
};

/// In rows that do not read an option it keeps its default and is not shown.
struct UsedWhen {
  bool (*holds)(const RowFacts& row) = nullptr;
  /// Strategies list the option, and a row of another one does not read it.
  bool of_strategies = false;
  /// Who reads it, in words: "--device cpu". Null: the strategies that list it.
  std::string (*users)(const Catalogue& catalogue) = nullptr;
  /// What a row of a strategy that lists it needs besides, in words. Null: nothing.
  std::string (*besides)(const strategies::StrategyEntry& strategy) = nullptr;
  /// The help of all strategies has it, not the help of those that list it.
  bool in_general_help = false;
};

const UsedWhen& condition(strategies::When when);

}  // namespace stratagem::bench
