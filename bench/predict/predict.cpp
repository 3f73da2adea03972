#include "bench/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "bench/config/placement.h"
#include "strategies/registry.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::bench {
namespace {

using schedules::Action;
using schedules::ActionKind;

/// What tells one cost from another, apart from the number of samples.
using CostKey = std::tuple<std::string, int, bool>;

CostKey key_of(const ActionCost& cost) { return {cost.kind, cost.stage, cost.first}; }

double alone_ms(const ActionCost& cost) { return cost.alone_ms < 0 ? cost.ms : cost.alone_ms; }

/// The first action of each stage that makes gradients of its weights, in the order of execution.
std::map<int, Action> first_backwards(const schedules::Schedule& schedule) {
  std::map<int, Action> first;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      if (makes_weight_gradients(action.kind)) first.emplace(action.stage, action);
    }
  }
  return first;
}

}  // namespace

std::vector<std::int64_t> samples_of_a_replica(const Config& config) {
  std::vector<schedules::Slice> slices = slices_of(config);
  if (sharded_state(config) != "none") slices = schedules::with_equal_counts(slices);
  std::vector<std::int64_t> samples;
  for (const schedules::Slice& slice : slices) {
    if (slice.replica == 0) samples.push_back(slice.count);
  }
  return samples;
}

schedules::Schedule schedule_of(const Config& config) {
  const int devices = placement_of(config).pipeline_devices();
  return schedules::make_schedule(
      schedule_name(config),
      {.devices = devices,
       .micro_batches = static_cast<int>(samples_of_a_replica(config).size()),
       .stages_per_device = stages_of(config) / devices});
}

schedules::Timeline predict_step(const Config& config, const std::vector<ActionCost>& costs) {
  const schedules::Schedule schedule = schedule_of(config);
  const auto first = first_backwards(schedule);
  const std::vector<std::int64_t> by_micro_batch = samples_of_a_replica(config);
  std::map<std::pair<CostKey, std::int64_t>, schedules::Cost> table;
  for (const ActionCost& cost : costs) {
    table[{key_of(cost), cost.samples}] = schedules::Cost(alone_ms(cost), cost.ms);
  }
  const auto price = [&](const Action& action) {
    const bool is_first = first.contains(action.stage) && first.at(action.stage) == action;
    const std::int64_t samples =
        action.kind == ActionKind::optimizer
            ? 0
            : by_micro_batch.at(static_cast<std::size_t>(action.micro_batch));
    const std::string kind(schedules::name(action.kind));
    auto found = table.find({{kind, action.stage, is_first}, samples});
    // A row of one micro-batch has first backwards only; nothing else is known of later ones.
    if (found == table.end()) found = table.find({{kind, action.stage, true}, samples});
    if (found == table.end()) {
      throw std::invalid_argument(
          fmt::format("no calibrated cost for {} with {} samples", to_string(action), samples));
    }
    return found->second;
  };
  return schedules::simulate(schedule, price, {.separate_copy_stream = config.device == "cuda"});
}

schedules::Timeline predict_timeline(const Config& config, const StageCosts& costs) {
  if (is_data_parallel(config)) return predict_data_parallel(config, costs);
  if (has_layer_groups(config)) return predict_sharded(config, costs);
  if (placement_of(config).replicas() > 1) return predict_replicas(config, costs);
  return predict_step(config, costs.costs);
}

double predict_step_ms(const Config& config, const StageCosts& costs) {
  const schedules::Timeline timeline = predict_timeline(config, costs);
  if (is_data_parallel(config) || config.protocol == "isolated") return timeline.step_ms;
  return schedules::mean_step_ms(timeline, placement_of(config).pipeline_devices(), config.steps);
}

Prediction predict(const Config& config, const StageCosts& costs) {
  Prediction prediction{.step_ms = predict_step_ms(config, costs)};
  if (has_layer_groups(config)) {
    prediction.peak_bytes = std::ranges::max(predict_peak_bytes(config, costs));
  }
  return prediction;
}

std::vector<ActionCost> costs_alone(std::vector<ActionCost> costs) {
  for (ActionCost& cost : costs) cost.ms = alone_ms(cost);
  return costs;
}

}  // namespace stratagem::bench
