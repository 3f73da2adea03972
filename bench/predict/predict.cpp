#include "bench/predict/predict.h"

#include <algorithm>
#include <utility>

#include "bench/config/placement.h"
#include "bench/predict/link_fit.h"
#include "bench/predict/priced_plan.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::bench {
namespace {

using schedules::Action;
using schedules::ActionKind;

double alone_ms(const ActionCost& cost) { return cost.alone_ms < 0 ? cost.ms : cost.alone_ms; }

/// The links between a row's ranks, of the messages that it has.
class RowLinks {
 public:
  RowLinks(const Config& config, const StageCosts& calibration)
      : calibration_(calibration), on_cores_(config.device == "cpu") {}

  /// Returns the cost of a transfer in flight; none for other actions.
  std::optional<schedules::Cost> price(const Action& action) const {
    const auto group = static_cast<std::size_t>(action.stage);
    switch (action.kind) {
      case ActionKind::gather_transfer:
        return on(calibration_.links.gather, calibration_.groups.at(group).gathered_bytes);
      case ActionKind::scatter_transfer:
        return on(calibration_.links.scatter, calibration_.groups.at(group).scattered_bytes);
      case ActionKind::all_reduce:
        return on(calibration_.links.all_reduce, calibration_.groups.at(group).summed_bytes);
      default:
        return std::nullopt;
    }
  }

 private:
  schedules::Cost on(const std::vector<LinkTime>& times, std::int64_t bytes) const {
    schedules::Cost cost = MeasuredLink(times).transfer(bytes);
    if (!on_cores_) cost.processor_share = 0;
    return cost;
  }

  const StageCosts& calibration_;
  bool on_cores_;  // CPU devices: transfers need cores, too
};

/// Returns whether calibration made a copy instead of what the action starts or brings, whose cost
/// the transfer has.
bool is_part_of_a_transfer(ActionKind kind) {
  return kind == ActionKind::unshard || kind == ActionKind::unshard_wait ||
         kind == ActionKind::reduce_scatter;
}

/// Predicts a replica's plan, once for each of them.
schedules::Timeline predict_plan(const Config& config, const StageCosts& calibration) {
  const PricedPlan plan(config, calibration);
  const RowLinks links(config, calibration);
  const auto price = [&](const Action& action) -> schedules::Cost {
    if (const auto transfer = links.price(action)) return *transfer;
    if (is_part_of_a_transfer(action.kind)) return 0;
    const ActionCost& cost = plan.of(action);
    return {alone_ms(cost), cost.ms};
  };
  const schedules::Timeline replica = schedules::simulate(
      plan.schedule(), price, {.separate_copy_stream = config.device == "cuda"});
  schedules::Timeline timeline{.entries = {}, .step_ms = replica.step_ms};
  for (int number = 0; number < placement_of(config).replicas(); ++number) {
    for (schedules::TimelineEntry entry : replica.entries) {
      entry.device += number * plan.schedule().devices();
      timeline.entries.push_back(entry);
    }
  }
  return timeline;
}

}  // namespace

std::vector<std::int64_t> samples_of(const strategies::StepPlan& plan) {
  std::vector<std::int64_t> samples;
  for (const schedules::Slice& slice : plan.partition) {
    if (slice.replica == 0) samples.push_back(slice.count);
  }
  return samples;
}

strategies::ModelParts parts_of(const StageCosts& calibration) {
  strategies::ModelParts parts{
      .kept_groups = {calibration.kept_groups.begin(), calibration.kept_groups.end()},
      .has_buffers = calibration.has_buffers};
  if (!calibration.owners.empty()) {
    parts.owners = {calibration.owners.begin(), calibration.owners.end()};
  }
  for (std::size_t group = 0; group < calibration.groups.size(); ++group) {
    const LayerGroup& of = calibration.groups[group];
    parts.groups_of_stage.resize(static_cast<std::size_t>(of.stage) + 1);
    ++parts.groups_of_stage.back();
    if (of.gathered_bytes == 0) parts.empty_groups.insert(static_cast<int>(group));
  }
  return parts;
}

bool has_layer_groups(const Config& config) {
  return strategies::has_layer_groups(plan_request(config), outline_of(config));
}

bool scatters_by_exchange(const Config& config) {
  return config.reduce_scatter == "exchange" && config.device == "cpu" &&
         backend_of(config) == "gloo";
}

std::vector<std::vector<MemoryAt>> predict_memory(const Config& config,
                                                  const StageCosts& calibration) {
  std::vector<std::vector<MemoryAt>> all;
  if (calibration.memory.resting.empty()) return all;
  const PricedPlan plan(config, calibration);
  const schedules::Timeline timeline = predict_timeline(config, calibration);
  const int devices = plan.schedule().devices();
  for (int device = 0; device < placement_of(config).replicas() * devices; ++device) {
    BytesByPurpose held = calibration.memory.resting.at(static_cast<std::size_t>(device % devices));
    std::vector<MemoryAt>& moments = all.emplace_back();
    double end_ms = 0;
    for (const schedules::TimelineEntry& entry : timeline.of_device(device)) {
      if (schedules::is_in_flight(entry.action.kind)) continue;
      const ActionMemory& memory = plan.memory_of(entry.action);
      moments.push_back({entry.start_ms, held, sum(held) + memory.most_bytes});
      add(held, memory.kept);
      end_ms = entry.end_ms;
    }
    moments.push_back({end_ms, held, sum(held)});
  }
  return all;
}

schedules::Timeline predict_timeline(const Config& config, const StageCosts& costs) {
  if (is_data_parallel(config)) return predict_data_parallel(config, costs);
  return predict_plan(config, costs);
}

double predict_step_ms(const Config& config, const StageCosts& costs) {
  const schedules::Timeline timeline = predict_timeline(config, costs);
  if (is_data_parallel(config) || config.protocol == "isolated") return timeline.step_ms;
  return schedules::mean_step_ms(timeline, placement_of(config).pipeline_devices(), config.steps);
}

Prediction predict(const Config& config, const StageCosts& costs) {
  Prediction prediction{.step_ms = predict_step_ms(config, costs),
                        .low_ms = predict_step_ms(config, at_quartile(costs, &Spread::low)),
                        .high_ms = predict_step_ms(config, at_quartile(costs, &Spread::high))};
  prediction.memory = predict_memory(config, costs);
  for (const auto& moments : prediction.memory) {
    const auto fullest = std::ranges::max_element(moments, {}, &MemoryAt::most_bytes);
    prediction.peak_bytes = std::max(prediction.peak_bytes.value_or(0), fullest->most_bytes);
  }
  return prediction;
}

std::vector<ActionCost> costs_alone(std::vector<ActionCost> costs) {
  for (ActionCost& cost : costs) cost.ms = alone_ms(cost);
  return costs;
}

}  // namespace stratagem::bench
