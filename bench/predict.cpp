#include "bench/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "bench/placement.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/simulate.h"
#include "strategies/registry.h"

namespace stratagem::bench {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

/// What tells one cost from another, apart from the number of samples.
using CostKey = std::tuple<std::string, int, bool>;

CostKey key_of(const ActionCost& cost) { return {cost.kind, cost.stage, cost.first}; }

double alone_ms(const ActionCost& cost) { return cost.alone_ms < 0 ? cost.ms : cost.alone_ms; }

std::int64_t samples_of(const Config& config, int micro_batches, int micro_batch) {
  if (micro_batches == 1) return config.global_batch_size;
  return std::min(config.split_size, config.global_batch_size - micro_batch * config.split_size);
}

bool uses(const Config& config, const char* option) {
  const auto& options = strategies::find_strategy(config.strategy).options;
  return std::ranges::find(options, option) != options.end();
}

/// The first action of each stage that makes gradients of its weights, in the order of execution.
std::map<int, Action> first_backwards(const pipeline::Schedule& schedule) {
  std::map<int, Action> first;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      const bool makes_gradients =
          action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
      if (makes_gradients) first.emplace(action.stage, action);
    }
  }
  return first;
}

/// The costs whose number of samples is the larger one in the list: the full micro-batches.
std::map<CostKey, ActionCost> full_size(const std::vector<ActionCost>& costs) {
  std::map<CostKey, ActionCost> largest;
  for (const ActionCost& cost : costs) {
    auto [entry, added] = largest.emplace(key_of(cost), cost);
    if (!added && cost.samples > entry->second.samples) entry->second = cost;
  }
  return largest;
}

}  // namespace

nlohmann::json costs_to_json(const std::vector<ActionCost>& costs) {
  nlohmann::json list = nlohmann::json::array();
  for (const ActionCost& cost : costs) {
    list.push_back({{"kind", cost.kind},
                    {"stage", cost.stage},
                    {"samples", cost.samples},
                    {"first", cost.first},
                    {"ms", cost.ms},
                    {"alone_ms", cost.alone_ms}});
  }
  return list;
}

std::vector<ActionCost> costs_from_json(const nlohmann::json& costs) {
  std::vector<ActionCost> list;
  for (const auto& cost : costs) {
    list.push_back({cost.at("kind").get<std::string>(), cost.at("stage").get<int>(),
                    cost.at("samples").get<std::int64_t>(), cost.at("first").get<bool>(),
                    cost.at("ms").get<double>(), cost.at("alone_ms").get<double>()});
  }
  return list;
}

pipeline::Schedule schedule_of(const Config& config) {
  const int devices = placement_of(config).pipeline_devices();
  if (!uses(config, "split_size")) return pipeline::make_schedule("naive", devices, 1);
  const std::int64_t micro_batches =
      (config.global_batch_size + config.split_size - 1) / config.split_size;
  return pipeline::make_schedule(config.schedule,
                                 {.devices = devices,
                                  .micro_batches = static_cast<int>(micro_batches),
                                  .stages_per_device = stages_of(config) / devices});
}

runtime::Timeline predict_step(const Config& config, const std::vector<ActionCost>& costs) {
  const pipeline::Schedule schedule = schedule_of(config);
  const auto first = first_backwards(schedule);
  std::map<std::pair<CostKey, std::int64_t>, pipeline::Cost> table;
  for (const ActionCost& cost : costs) {
    table[{key_of(cost), cost.samples}] = pipeline::Cost(alone_ms(cost), cost.ms);
  }
  const auto price = [&](const Action& action) {
    const bool is_first = first.contains(action.stage) && first.at(action.stage) == action;
    const std::int64_t samples =
        action.kind == ActionKind::optimizer
            ? 0
            : samples_of(config, schedule.micro_batches, action.micro_batch);
    const std::string kind(pipeline::name(action.kind));
    auto found = table.find({{kind, action.stage, is_first}, samples});
    // A row of one micro-batch has first backwards only; nothing else is known of later ones.
    if (found == table.end()) found = table.find({{kind, action.stage, true}, samples});
    if (found == table.end()) {
      throw std::invalid_argument(
          fmt::format("no calibrated cost for {} with {} samples", to_string(action), samples));
    }
    return found->second;
  };
  return pipeline::simulate(schedule, price, {.separate_copy_stream = config.device == "cuda"});
}

runtime::Timeline predict_timeline(const Config& config, const nlohmann::json& calibration) {
  if (placement_of(config).replicas() > 1) return predict_replicas(config, calibration);
  return predict_step(config, costs_from_json(calibration));
}

double predict_step_ms(const Config& config, const nlohmann::json& calibration) {
  return predict_timeline(config, calibration).step_ms;
}

nlohmann::json costs_alone(const nlohmann::json& costs) {
  std::vector<ActionCost> alone = costs_from_json(costs);
  for (ActionCost& cost : alone) cost.ms = alone_ms(cost);
  return costs_to_json(alone);
}

double predict_step_ms_from_two(const Config& config, const nlohmann::json& costs_a,
                                const nlohmann::json& costs_b) {
  const auto one = full_size(costs_from_json(costs_a));
  const auto other = full_size(costs_from_json(costs_b));
  std::vector<ActionCost> line;
  const int micro_batches = schedule_of(config).micro_batches;
  for (const std::int64_t samples : {samples_of(config, micro_batches, 0),
                                     samples_of(config, micro_batches, micro_batches - 1)}) {
    for (const auto& [key, cost] : one) {
      const auto match = other.find(key);
      if (match == other.end()) continue;
      const auto span = static_cast<double>(match->second.samples - cost.samples);
      ActionCost estimate = cost;
      estimate.samples = cost.samples == 0 ? 0 : samples;
      const auto distance = static_cast<double>(estimate.samples - cost.samples);
      const auto along = [span, distance](double from, double to) {
        const double slope = span == 0 ? 0 : (to - from) / span;
        return std::max(0.0, from + slope * distance);
      };
      estimate.ms = along(cost.ms, match->second.ms);
      estimate.alone_ms = along(alone_ms(cost), alone_ms(match->second));
      line.push_back(estimate);
    }
  }
  return predict_step(config, line).step_ms;
}

}  // namespace stratagem::bench
