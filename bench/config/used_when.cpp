#include "bench/config/used_when.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <vector>

#include "strategies/ranks/mesh.h"

namespace stratagem::bench {
namespace {

using strategies::When;

/// `test` is a member of ModelEntry, or a function of one.
template <class Test>
std::string models_that(const Catalogue& catalogue, Test test) {
  std::vector<std::string> names;
  for (const models::ModelEntry& model : catalogue.models) {
    if (std::invoke(test, model)) names.push_back(model.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// `test` is a member of ScheduleEntry.
template <class Test>
std::string schedules_that(const Catalogue& catalogue, Test test) {
  std::vector<std::string> users;
  for (const schedules::ScheduleEntry& schedule : catalogue.schedules) {
    if (std::invoke(test, schedule)) users.push_back("--schedule " + schedule.name);
  }
  return fmt::format("{}", fmt::join(users, ", "));
}

template <class Test>
bool has_schedule_that(const RowFacts& row, Test test) {
  return row.schedule != nullptr && std::invoke(test, *row.schedule) && row.strategy != nullptr &&
         row.strategy->reads("schedule") && row.has("pipeline");
}

/// Returns an empty text for a strategy that always has stages.
std::string stages_in_mesh(const strategies::StrategyEntry& strategy) {
  return strategy.usually_spreads_over("pipeline") ? "" : "stages in --mesh";
}

}  // namespace

RowFacts::RowFacts(const Config& row, const Catalogue& catalogue)
    : config(row),
      strategy(catalogue.strategy(row.strategy)),
      model(catalogue.model(row.model)),
      schedule(catalogue.schedule(row.schedule)) {}

bool RowFacts::in_mesh(const char* dimension) const {
  return config.mesh != "auto" && ranks::parse_mesh(config.mesh).size(dimension) > 1;
}

bool RowFacts::has(const char* dimension) const {
  return strategy->usually_spreads_over(dimension) || in_mesh(dimension);
}

/// A mesh of only stages or sharded layers leaves out the usual replicas.
bool RowFacts::has_replicas() const {
  const bool replaced = !in_mesh("data") && (in_mesh("pipeline") || in_mesh("tensor"));
  return (has("data") && !replaced) || shares_positions();
}

bool RowFacts::shares_positions() const {
  return config.mesh == "auto" ? strategy->usually_spreads_over("context") : in_mesh("context");
}

bool RowFacts::exchanges_keys() const {
  return shares_positions() && config.context_exchange != "heads";
}

bool RowFacts::layers_gather() const {
  return (strategy->shares_sequence && shards_layers()) ||
         (shares_positions() && config.context_exchange == "gather");
}

bool RowFacts::copies_heads() const {
  if (!shards_layers() || model == nullptr) return false;
  return model->is_copied_by(config.mesh == "auto" ? config.devices
                                                   : ranks::parse_mesh(config.mesh).size("tensor"));
}

bool RowFacts::shards_layers() const {
  return config.mesh == "auto" ? strategy->usually_spreads_over("tensor") : in_mesh("tensor");
}

bool RowFacts::may_shard_state() const {
  return has_replicas() || strategy->usually_spreads_over("tensor");
}

bool RowFacts::shards_state() const {
  return !strategy->reads("shard") || (config.shard != "none" && may_shard_state());
}

bool RowFacts::is_cut_by_count() const {
  return strategy->reads("accumulation_steps") && config.accumulation_steps > 1;
}

bool RowFacts::is_cut_by_size() const {
  return strategy->reads("split_size") && !is_cut_by_count() && has("pipeline");
}

namespace {

struct Condition {
  When when;
  UsedWhen used;
};

/// The conditions, in the order of When.
constexpr auto conditions = std::to_array<Condition>({
    {When::always,
     {.holds = [](const RowFacts&) { return true; },
      .users = [](const Catalogue&) { return std::string(); }}},

    {When::between_ranks,
     {.holds =
          [](const RowFacts& row) {
            return row.config.ranks > 1 ||
                   (!row.strategy->one_process && (row.has_replicas() || row.has("tensor")));
          },
      .of_strategies = true,
      .users = [](const Catalogue&) { return std::string("rows of several ranks"); },
      .in_general_help = true}},

    {When::schedule_asks,
     {.holds =
          [](const RowFacts& row) {
            return has_schedule_that(row, &schedules::ScheduleEntry::asks_for_stages);
          },
      .users =
          [](const Catalogue& catalogue) {
            return schedules_that(catalogue, &schedules::ScheduleEntry::asks_for_stages);
          }}},

    {When::schedule_is_searched,
     {.holds =
          [](const RowFacts& row) {
            return has_schedule_that(row, &schedules::ScheduleEntry::is_searched);
          },
      .users =
          [](const Catalogue& catalogue) {
            return schedules_that(catalogue, &schedules::ScheduleEntry::is_searched);
          }}},

    {When::groups_recomputed,
     {.holds = [](const RowFacts& row) { return row.config.recompute == "full"; },
      .users = [](const Catalogue&) { return std::string("--recompute full"); }}},

    {When::model_has_images,
     {.holds = [](const RowFacts& row) { return row.model != nullptr && row.model->has_images(); },
      .users =
          [](const Catalogue& catalogue) {
            return models_that(catalogue, &models::ModelEntry::has_images);
          }}},

    {When::model_has_tokens,
     {.holds = [](const RowFacts& row) { return row.model != nullptr && row.model->has_tokens(); },
      .users =
          [](const Catalogue& catalogue) {
            return models_that(catalogue, &models::ModelEntry::has_tokens);
          }}},

    {When::model_has_labels,
     {.holds = [](const RowFacts& row) { return row.model == nullptr || !row.model->has_tokens(); },
      .users =
          [](const Catalogue& catalogue) {
            return models_that(catalogue,
                               [](const models::ModelEntry& model) { return !model.has_tokens(); });
          }}},

    {When::model_takes_sizes,
     {.holds = [](const RowFacts& row) { return row.model != nullptr && row.model->takes_sizes; },
      .users =
          [](const Catalogue& catalogue) {
            return models_that(catalogue, &models::ModelEntry::takes_sizes);
          }}},

    {When::model_has_dropout,
     {.holds = [](const RowFacts& row) { return row.model != nullptr && row.model->has_dropout; },
      .users =
          [](const Catalogue& catalogue) {
            return models_that(catalogue, &models::ModelEntry::has_dropout);
          }}},

    {When::on_cpu,
     {.holds = [](const RowFacts& row) { return row.config.device == "cpu"; },
      .users = [](const Catalogue&) { return std::string("--device cpu"); }}},

    {When::own_layers_on_cpu,
     {.holds =
          [](const RowFacts& row) {
            const bool of_a_file = row.model != nullptr && row.model->fixed_size;
            return row.config.device == "cpu" && !of_a_file;
          },
      .users = [](const Catalogue&) { return std::string("--device cpu"); }}},

    {When::on_cuda,
     {.holds = [](const RowFacts& row) { return row.config.device == "cuda"; },
      .users = [](const Catalogue&) { return std::string("--device cuda"); }}},

    {When::optimizer_is_sgd,
     {.holds = [](const RowFacts& row) { return row.config.optimizer == "sgd"; },
      .users = [](const Catalogue&) { return std::string("--optimizer sgd"); }}},

    {When::order_is_random,
     {.holds = [](const RowFacts& row) { return row.config.order == "random"; },
      .users = [](const Catalogue&) { return std::string("--order random"); }}},

    {When::strategy_says, {.holds = [](const RowFacts&) { return true; }, .of_strategies = true}},

    {When::several_stages,
     {.holds = [](const RowFacts& row) { return row.has("pipeline"); },
      .of_strategies = true,
      .besides = stages_in_mesh}},

    {When::replicas,
     {.holds = [](const RowFacts& row) { return row.may_shard_state(); },
      .of_strategies = true,
      .besides = [](const strategies::StrategyEntry&) { return std::string("replicas"); }}},

    {When::several_replicas,
     {.holds =
          [](const RowFacts& row) {
            if (row.strategy->reads("reduce")) return strategies::exchanges_buckets(row.config);
            return row.config.shard == "none" && row.has_replicas();
          },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            return std::string(strategy.reads("reduce") ? "--reduce overlapped or --replicate kept"
                                                        : "several replicas and --shard none");
          }}},

    {When::positions_shared,
     {.holds = [](const RowFacts& row) { return row.shares_positions(); },
      .of_strategies = true,
      .besides = [](const strategies::StrategyEntry&) { return std::string("shared positions"); }}},

    {When::keys_exchanged,
     {.holds = [](const RowFacts& row) { return row.exchanges_keys(); },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry&) {
            return std::string("--context-exchange ring or gather");
          }}},

    {When::layers_exchange,
     {.holds = [](const RowFacts& row) { return row.shards_layers() || row.exchanges_keys(); },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry&) {
            return std::string("sharded layers, or --context-exchange ring or gather");
          }}},

    {When::layers_gather,
     {.holds = [](const RowFacts& row) { return row.layers_gather(); },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            return std::string(strategy.shares_sequence ? "sharded layers"
                                                        : "--context-exchange gather");
          }}},

    {When::sums_are_shared,
     {.holds =
          [](const RowFacts& row) {
            return row.config.device == "cpu" && (row.shards_state() || row.layers_gather());
          },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            const bool by_option = strategy.reads("shard") && !strategy.shares_sequence;
            return std::string(by_option ? "--device cpu, and --shard or --context-exchange gather"
                                         : "--device cpu");
          }}},

    {When::copies_kept,
     {.holds = [](const RowFacts& row) { return row.config.replicate == "kept"; },
      .of_strategies = true,
      .users = [](const Catalogue&) { return std::string("--replicate kept"); }}},

    {When::cut_by_size,
     {.holds = [](const RowFacts& row) { return row.is_cut_by_size(); },
      .of_strategies = true,
      .besides = stages_in_mesh}},

    /// Only rows of replicas read a count of one; with more they exchange gradients repeatedly.
    {When::cut_by_count,
     {.holds =
          [](const RowFacts& row) {
            return row.is_cut_by_count() ||
                   (!row.is_cut_by_size() && row.strategy->usually_spreads_over("data"));
          },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            const bool has_stages = strategy.usually_spreads_over("pipeline");
            return std::string(has_stages ? "two micro-batches or more" : "");
          }}},

    {When::state_sharded,
     {.holds = [](const RowFacts& row) { return row.shards_state(); },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            return std::string(strategy.reads("shard") ? "--shard" : "");
          }}},

    {When::parameters_sharded,
     {.holds =
          [](const RowFacts& row) {
            return row.shards_state() &&
                   (row.config.shard == "parameters" || !row.strategy->reads("shard"));
          },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            return std::string(strategy.reads("shard") ? "--shard parameters" : "");
          }}},

    {When::halves_are_summed,
     {.holds =
          [](const RowFacts& row) {
            const bool shares_sequence = row.strategy->shares_sequence && row.shards_layers();
            return row.config.mixed_precision != "none" &&
                   (row.has_replicas() || shares_sequence || row.copies_heads());
          },
      .of_strategies = true,
      .besides =
          [](const strategies::StrategyEntry& strategy) {
            return std::string(strategy.shares_sequence
                                   ? "--mixed-precision"
                                   : "--mixed-precision and replicas, or copies of heads");
          }}},

    {When::scaled,
     {.holds = [](const RowFacts& row) { return row.config.mixed_precision == "float16"; },
      .of_strategies = true,
      .users = [](const Catalogue&) { return std::string("--mixed-precision float16"); }}},

    {When::scaled_dynamically,
     {.holds =
          [](const RowFacts& row) {
            return row.config.mixed_precision == "float16" && row.config.loss_scale == "dynamic";
          },
      .of_strategies = true,
      .users =
          [](const Catalogue&) {
            return std::string("--mixed-precision float16 --loss-scale dynamic");
          }}},

});

constexpr bool in_the_order_of_when() {
  std::size_t place = 0;
  for (const Condition& each : conditions) {
    if (static_cast<std::size_t>(each.when) != place++) return false;
  }
  return true;
}
static_assert(in_the_order_of_when());

}  // namespace

const UsedWhen& condition(When when) { return conditions.at(static_cast<std::size_t>(when)).used; }

}  // namespace stratagem::bench
