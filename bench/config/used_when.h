// When rows read an option: each condition once, with its words for help and messages.
#pragma once

#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"

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

namespace used_when {

extern const UsedWhen always;
extern const UsedWhen between_ranks;
extern const UsedWhen schedule_asks;
extern const UsedWhen model_has_images;
extern const UsedWhen model_has_tokens;
extern const UsedWhen model_has_labels;
extern const UsedWhen model_takes_sizes;
extern const UsedWhen on_cpu;
extern const UsedWhen on_cuda;
extern const UsedWhen optimizer_is_sgd;
// Of options that strategies list:
extern const UsedWhen strategy_says;
extern const UsedWhen several_stages;
extern const UsedWhen replicas;
extern const UsedWhen several_replicas;  // whole gradients that are exchanged in buckets
extern const UsedWhen sharded_layers;
extern const UsedWhen sums_are_shared;  // on CPUs
extern const UsedWhen copies_kept;
extern const UsedWhen cut_by_size;
extern const UsedWhen cut_by_count;
extern const UsedWhen state_sharded;
extern const UsedWhen parameters_sharded;
extern const UsedWhen halves_are_summed;
extern const UsedWhen scaled;
extern const UsedWhen scaled_dynamically;

}  // namespace used_when
}  // namespace stratagem::bench
