#include "bench/config/used_when.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <vector>

#include "strategies/ranks/mesh.h"

namespace stratagem::bench {
namespace {

/// `test`: a member of ModelEntry, or a function of one.
template <class Test>
std::string models_that(const Catalogue& catalogue, Test test) {
  std::vector<std::string> names;
  for (const models::ModelEntry& model : catalogue.models) {
    if (std::invoke(test, model)) names.push_back(model.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A strategy that has stages anyway needs nothing for them.
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

/// A mesh of stages or of sharded layers alone leaves the replicas out that are usual.
bool RowFacts::has_replicas() const {
  const bool replaced = !in_mesh("data") && (in_mesh("pipeline") || in_mesh("tensor"));
  return has("data") && !replaced;
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

namespace used_when {

constinit const UsedWhen always{.holds = [](const RowFacts&) { return true; },
                                .users = [](const Catalogue&) { return std::string(); }};

constinit const UsedWhen between_ranks{
    .holds =
        [](const RowFacts& row) {
          return row.config.ranks > 1 ||
                 (!row.strategy->one_process && (row.has_replicas() || row.has("tensor")));
        },
    .of_strategies = true,
    .users = [](const Catalogue&) { return std::string("rows of several ranks"); },
    .in_general_help = true};

constinit const UsedWhen schedule_asks{
    .holds =
        [](const RowFacts& row) {
          return row.schedule != nullptr && row.schedule->asks_for_stages() &&
                 row.strategy != nullptr && row.strategy->reads("schedule") && row.has("pipeline");
        },
    .users =
        [](const Catalogue& catalogue) {
          std::vector<std::string> users;
          for (const schedules::ScheduleEntry& schedule : catalogue.schedules) {
            if (schedule.asks_for_stages()) users.push_back("--schedule " + schedule.name);
          }
          return fmt::format("{}", fmt::join(users, ", "));
        }};

constinit const UsedWhen model_has_images{
    .holds = [](const RowFacts& row) { return row.model != nullptr && row.model->has_images(); },
    .users =
        [](const Catalogue& catalogue) {
          return models_that(catalogue, &models::ModelEntry::has_images);
        }};

constinit const UsedWhen model_has_tokens{
    .holds = [](const RowFacts& row) { return row.model != nullptr && row.model->has_tokens(); },
    .users =
        [](const Catalogue& catalogue) {
          return models_that(catalogue, &models::ModelEntry::has_tokens);
        }};

constinit const UsedWhen model_has_labels{
    .holds = [](const RowFacts& row) { return row.model == nullptr || !row.model->has_tokens(); },
    .users =
        [](const Catalogue& catalogue) {
          return models_that(catalogue,
                             [](const models::ModelEntry& model) { return !model.has_tokens(); });
        }};

constinit const UsedWhen model_takes_sizes{
    .holds = [](const RowFacts& row) { return row.model != nullptr && row.model->takes_sizes; },
    .users =
        [](const Catalogue& catalogue) {
          return models_that(catalogue, &models::ModelEntry::takes_sizes);
        }};

constinit const UsedWhen on_cpu{
    .holds = [](const RowFacts& row) { return row.config.device == "cpu"; },
    .users = [](const Catalogue&) { return std::string("--device cpu"); }};

constinit const UsedWhen on_cuda{
    .holds = [](const RowFacts& row) { return row.config.device == "cuda"; },
    .users = [](const Catalogue&) { return std::string("--device cuda"); }};

constinit const UsedWhen optimizer_is_sgd{
    .holds = [](const RowFacts& row) { return row.config.optimizer == "sgd"; },
    .users = [](const Catalogue&) { return std::string("--optimizer sgd"); }};

constinit const UsedWhen strategy_says{.holds = [](const RowFacts&) { return true; },
                                       .of_strategies = true};

constinit const UsedWhen several_stages{
    .holds = [](const RowFacts& row) { return row.has("pipeline"); },
    .of_strategies = true,
    .besides = stages_in_mesh};

constinit const UsedWhen replicas{
    .holds = [](const RowFacts& row) { return row.may_shard_state(); },
    .of_strategies = true,
    .besides = [](const strategies::StrategyEntry&) { return std::string("replicas"); }};

constinit const UsedWhen several_replicas{
    .holds =
        [](const RowFacts& row) {
          if (row.strategy->reads("reduce")) return strategies::exchanges_buckets(row.config);
          return row.config.shard == "none" && row.config.mixed_precision == "none" &&
                 row.has_replicas();
        },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry& strategy) {
          return std::string(strategy.reads("reduce")
                                 ? "--reduce overlapped or --replicate kept"
                                 : "several replicas, --shard none and --mixed-precision none");
        }};

constinit const UsedWhen sharded_layers{
    .holds = [](const RowFacts& row) { return row.shards_layers(); },
    .of_strategies = true,
    .besides = [](const strategies::StrategyEntry&) { return std::string("sharded layers"); }};

constinit const UsedWhen sums_are_shared{
    .holds =
        [](const RowFacts& row) {
          const bool shares_sequence = row.strategy->reads("keep_gathered");
          return row.config.device == "cpu" &&
                 (row.shards_state() || (shares_sequence && row.shards_layers()));
        },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry& strategy) {
          const bool by_option = strategy.reads("shard") && !strategy.reads("keep_gathered");
          return std::string(by_option ? "--device cpu and --shard" : "--device cpu");
        }};

constinit const UsedWhen copies_kept{
    .holds = [](const RowFacts& row) { return row.config.replicate == "kept"; },
    .of_strategies = true,
    .users = [](const Catalogue&) { return std::string("--replicate kept"); }};

constinit const UsedWhen cut_by_size{
    .holds = [](const RowFacts& row) { return row.is_cut_by_size(); },
    .of_strategies = true,
    .besides = stages_in_mesh};

/// One micro-batch is stated of replicas alone, which else exchange gradients more than once.
constinit const UsedWhen cut_by_count{
    .holds =
        [](const RowFacts& row) {
          return row.is_cut_by_count() ||
                 (!row.is_cut_by_size() && row.strategy->usually_spreads_over("data"));
        },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry& strategy) {
          const bool has_stages = strategy.usually_spreads_over("pipeline");
          return std::string(has_stages ? "two micro-batches or more" : "");
        }};

constinit const UsedWhen state_sharded{
    .holds = [](const RowFacts& row) { return row.shards_state(); },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry& strategy) {
          return std::string(strategy.reads("shard") ? "--shard" : "");
        }};

constinit const UsedWhen parameters_sharded{
    .holds =
        [](const RowFacts& row) {
          return row.shards_state() &&
                 (row.config.shard == "parameters" || !row.strategy->reads("shard"));
        },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry& strategy) {
          return std::string(strategy.reads("shard") ? "--shard parameters" : "");
        }};

constinit const UsedWhen halves_are_summed{
    .holds =
        [](const RowFacts& row) {
          const bool shares_sequence = row.strategy->reads("keep_gathered");
          return row.config.mixed_precision != "none" &&
                 (row.has_replicas() || (shares_sequence && row.shards_layers()));
        },
    .of_strategies = true,
    .besides =
        [](const strategies::StrategyEntry&) {
          return std::string("--mixed-precision, and replicas or shared positions");
        }};

constinit const UsedWhen scaled{
    .holds = [](const RowFacts& row) { return row.config.mixed_precision == "float16"; },
    .of_strategies = true,
    .users = [](const Catalogue&) { return std::string("--mixed-precision float16"); }};

constinit const UsedWhen scaled_dynamically{
    .holds =
        [](const RowFacts& row) {
          return row.config.mixed_precision == "float16" && row.config.loss_scale == "dynamic";
        },
    .of_strategies = true,
    .users =
        [](const Catalogue&) {
          return std::string("--mixed-precision float16 --loss-scale dynamic");
        }};

}  // namespace used_when
}  // namespace stratagem::bench
