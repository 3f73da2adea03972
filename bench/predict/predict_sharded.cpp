// Predicting the step of replicas whose layers have groups: the schedule of one replica with
// calibrated costs, its gathers and scatters in flight on the measured links.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "bench/config/placement.h"
#include "bench/predict/group_cost_keys.h"
#include "bench/predict/link_fit.h"
#include "bench/predict/predict.h"
#include "strategies/registry.h"
#include "strategies/runtime/parse.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/sharding.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::bench {
namespace {

using schedules::Action;
using schedules::ActionKind;

/// A row's schedule with what each action costs.
class ShardedRow {
 public:
  ShardedRow(const Config& config, const StageCosts& calibration)
      : calibration_(calibration),
        schedule_(sharded_schedule(config, calibration.groups, calibration.has_buffers)),
        keys_(schedule_, samples_of_a_replica(config)) {
    for (const ActionCost& cost : calibration.costs) {
      table_[{cost.kind, cost.stage, cost.samples, cost.first}] = &cost;
    }
  }

  const schedules::Schedule& schedule() const { return schedule_; }

  const ActionCost& of(const Action& action) const {
    GroupCostKeys::Key key = keys_.of(action);
    auto found = table_.find(key);
    std::get<bool>(key) = true;  // what is done once in the calibrated step may be done again
    if (found == table_.end()) found = table_.find(key);
    if (found != table_.end()) return *found->second;
    throw std::invalid_argument(fmt::format("no calibrated cost for {} with {} samples",
                                            to_string(action), std::get<std::int64_t>(key)));
  }

  const LayerGroup& group(const Action& action) const {
    return calibration_.groups.at(static_cast<std::size_t>(action.stage));
  }

 private:
  const StageCosts& calibration_;
  schedules::Schedule schedule_;
  GroupCostKeys keys_;
  std::map<GroupCostKeys::Key, const ActionCost*> table_;
};

}  // namespace

bool has_layer_groups(const Config& config) {
  if (strategies::find_strategy(config.strategy).one_process) return false;
  const bool grouped = sharded_state(config) != "none" || config.mixed_precision != "none";
  return grouped && placement_of(config).replicas() > 1;
}

bool scales_loss(const Config& config) {
  if (config.mixed_precision != "float16" || config.loss_scale == "none") return false;
  return runtime::number_in<double>(config.loss_scale).value_or(0) != 1;
}

bool sums_norms_over_ranks(const Config& config) {
  return sharded_state(config) != "none" || placement_of(config).ranks_per_replica() > 1;
}

bool scatters_by_exchange(const Config& config) {
  return config.reduce_scatter == "exchange" && config.device == "cpu" &&
         backend_of(config) == "gloo";
}

schedules::Schedule sharded_schedule(const Config& config, const std::vector<LayerGroup>& groups,
                                     bool has_buffers) {
  schedules::Sharding sharding{
      .sharded = schedules::sharded_by(sharded_state(config)),
      .reshard_after_forward = config.reshard_after_forward,
      .prefetch = static_cast<int>(config.prefetch),
      .replicated = true,
      .copies = config.replicas_of_shards > 1,
      .with_buffers = has_buffers,
  };
  std::vector<int> per_stage(static_cast<std::size_t>(stages_of(config)), 0);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    ++per_stage.at(static_cast<std::size_t>(groups[group].stage));
    if (groups[group].gathered_bytes == 0) sharding.empty.insert(static_cast<int>(group));
  }
  const schedules::Schedule cut = schedules::cut_into_groups(schedule_of(config), per_stage);
  schedules::Schedule sharded = schedules::add_sharding(cut, sharding);
  const bool needs_norm = config.clip_gradients > 0 || scales_loss(config);
  return needs_norm ? schedules::add_clipping(sharded, sums_norms_over_ranks(config)) : sharded;
}

schedules::Timeline predict_sharded(const Config& config, const StageCosts& calibration) {
  const ShardedRow row(config, calibration);
  const MeasuredLink scatter(calibration.links.scatter);
  const bool gathers = sharded_state(config) != "none";
  const MeasuredLink gather = gathers ? MeasuredLink(calibration.links.gather) : scatter;
  const bool copied = config.replicas_of_shards > 1;
  const MeasuredLink copies = copied ? MeasuredLink(calibration.links.copies) : scatter;
  const bool on_cores = config.device == "cpu";  // which transfers need, too
  const auto on_link = [&](const MeasuredLink& link, std::int64_t bytes) {
    schedules::Cost cost = link.transfer(bytes);
    if (!on_cores) cost.processor_share = 0;
    return cost;
  };
  const auto price = [&](const Action& action) -> schedules::Cost {
    switch (action.kind) {
      case ActionKind::gather_transfer:
        return on_link(gather, row.group(action).gathered_bytes);
      case ActionKind::scatter_transfer:
        return on_link(scatter, row.group(action).scattered_bytes);
      case ActionKind::copies_transfer:
        return on_link(copies, row.group(action).copied_bytes);
      case ActionKind::unshard:  // the replicas' place was taken by a copy
      case ActionKind::unshard_wait:
      case ActionKind::reduce_scatter:
      case ActionKind::reduce_copies:
        return 0;
      default:
        return row.of(action).ms;
    }
  };
  const schedules::Timeline replica =
      schedules::simulate(row.schedule(), price, {.separate_copy_stream = config.device == "cuda"});
  schedules::Timeline timeline{.entries = {}, .step_ms = replica.step_ms};
  for (int number = 0; number < placement_of(config).replicas(); ++number) {
    for (schedules::TimelineEntry entry : replica.entries) {
      entry.device += number * row.schedule().devices();
      timeline.entries.push_back(entry);
    }
  }
  return timeline;
}

std::vector<std::int64_t> predict_peak_bytes(const Config& config, const StageCosts& calibration) {
  const ShardedRow row(config, calibration);
  std::vector<std::int64_t> peaks;
  for (std::size_t device = 0; device < calibration.resting_bytes.size(); ++device) {
    std::int64_t held = calibration.resting_bytes[device];
    std::int64_t peak = held;
    for (const Action& action : row.schedule().actions.at(device)) {
      peak = std::max(peak, held + row.of(action).most_bytes);
      held += row.of(action).kept_bytes;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stratagem::bench
