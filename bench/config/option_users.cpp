// Who uses an option, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "bench/config/options.h"

namespace stratagem::bench {
namespace {

/// Names the condition under which a row of the strategy uses the option; empty if there is none.
std::string condition_of(UsedWhen used_when, const StrategyFacts& strategy) {
  switch (used_when) {
    case UsedWhen::several_stages:
    case UsedWhen::cut_by_size:
      return strategy.usually_spreads_over("pipeline") ? "" : "stages in --mesh";
    case UsedWhen::cut_by_count:
      return strategy.usually_spreads_over("pipeline") ? "two micro-batches or more" : "";
    case UsedWhen::replicas:
      return "replicas";
    case UsedWhen::several_replicas:
      if (strategy.reads("reduce")) return "--reduce overlapped or --replicate kept";
      return "several replicas, --shard none and --mixed-precision none";
    case UsedWhen::halves_are_summed:
      return "--mixed-precision, and replicas or shared positions";
    case UsedWhen::state_sharded:
      return strategy.reads("shard") ? "--shard" : "";
    case UsedWhen::parameters_sharded:
      return strategy.reads("shard") ? "--shard parameters" : "";
    case UsedWhen::sharded_layers:
      return "sharded layers";
    case UsedWhen::sums_are_shared:
      return strategy.reads("shard") && !strategy.reads("keep_gathered")
                 ? "--device cpu and --shard"
                 : "--device cpu";
    default:
      return "";
  }
}

}  // namespace

std::string users_of(const Option& option, const Catalogue& catalogue) {
  std::vector<std::string> users;
  switch (option.used_when) {
    case UsedWhen::always:
      return "";
    case UsedWhen::strategy_says:
    case UsedWhen::several_stages:
    case UsedWhen::several_replicas:
    case UsedWhen::sharded_layers:
    case UsedWhen::cut_by_size:
    case UsedWhen::cut_by_count:
    case UsedWhen::replicas:
    case UsedWhen::state_sharded:
    case UsedWhen::parameters_sharded:
    case UsedWhen::halves_are_summed:
    case UsedWhen::sums_are_shared:
      for (const StrategyFacts& strategy : catalogue.strategies) {
        if (strategy.reads(option.name)) users.push_back(strategy.name);
      }
      break;
    case UsedWhen::copies_kept:
      return "--replicate kept";
    case UsedWhen::scaled:
      return "--mixed-precision float16";
    case UsedWhen::scaled_dynamically:
      return "--mixed-precision float16 --loss-scale dynamic";
    case UsedWhen::between_ranks:
      return "rows of several ranks";
    case UsedWhen::schedule_asks:
      for (const ScheduleFacts& schedule : catalogue.schedules) {
        if (schedule.asks_for_stages) users.push_back("--schedule " + schedule.name);
      }
      break;
    case UsedWhen::model_has_images:
    case UsedWhen::model_has_tokens:
    case UsedWhen::model_has_labels:
    case UsedWhen::model_takes_sizes:
      for (const ModelFacts& model : catalogue.models) {
        if (option.used_when == UsedWhen::model_has_images    ? model.has_images
            : option.used_when == UsedWhen::model_has_tokens  ? model.has_tokens
            : option.used_when == UsedWhen::model_takes_sizes ? model.takes_sizes
                                                              : !model.has_tokens) {
          users.push_back(model.name);
        }
      }
      break;
    case UsedWhen::on_cpu:
      return "--device cpu";
    case UsedWhen::on_cuda:
      return "--device cuda";
    case UsedWhen::optimizer_is_sgd:
      return "--optimizer sgd";
  }
  return fmt::format("{}", fmt::join(users, ", "));
}

std::string users_and_conditions(const Option& option, const Catalogue& catalogue) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_condition;
  for (const StrategyFacts& strategy : catalogue.strategies) {
    if (!strategy.reads(option.name)) continue;
    const std::string condition = condition_of(option.used_when, strategy);
    const auto found =
        std::ranges::find(by_condition, condition, [](auto& each) { return each.first; });
    if (found != by_condition.end()) {
      found->second.push_back(strategy.name);
    } else {
      by_condition.push_back({condition, {strategy.name}});
    }
  }
  std::string words;
  for (const auto& [condition, names] : by_condition) {
    words += fmt::format("{}{}{}{}", words.empty() ? "" : "; ", fmt::join(names, ", "),
                         condition.empty() ? "" : " with ", condition);
  }
  const bool conditional = words.find(" with ") != std::string::npos;
  return conditional ? words : users_of(option, catalogue);
}

}  // namespace stratagem::bench
