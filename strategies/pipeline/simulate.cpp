#include "strategies/pipeline/simulate.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stratagem::pipeline {

runtime::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
                           const SimulationOptions& options) {
  std::map<Action, double> end_of;
  std::map<std::pair<int, bool>, double> free_at;  // (device, copy stream)
  runtime::Timeline timeline;
  for_each_in_order(lowered, [&](int device, const Action& action) {
    const bool copy_stream = options.separate_copy_stream && is_copy(action.kind);
    double& stream_free = free_at[{device, copy_stream}];
    double start = stream_free;
    for (const Action& needed : predecessors(lowered, action)) {
      start = std::max(start, end_of.at(needed));
    }
    const double end = start + cost(action);
    stream_free = end;
    end_of[action] = end;
    timeline.entries.push_back({device, action, start, end});
    timeline.step_ms = std::max(timeline.step_ms, end);
  });
  std::ranges::stable_sort(timeline.entries, {}, &runtime::TimelineEntry::device);
  return timeline;
}

double LinkModel::transfer_ms(double bytes) const {
  constexpr double bytes_per_gigabyte_millisecond = 1e6;
  if (gigabytes_per_second <= 0) return latency_ms;
  return latency_ms + bytes / (gigabytes_per_second * bytes_per_gigabyte_millisecond);
}

CostFunction cost_function(UniformCosts costs) {
  return [costs = std::move(costs)](const Action& action) {
    const auto stage = static_cast<std::size_t>(action.stage);
    switch (action.kind) {
      case ActionKind::forward:
        return costs.forward_ms.at(stage);
      case ActionKind::backward:
        return costs.backward_ms.at(stage);
      case ActionKind::optimizer:
        return costs.optimizer_ms;
      case ActionKind::copy_input:
        return costs.input_ms;
      case ActionKind::copy_activation:
      case ActionKind::copy_gradient:
        return costs.transfer_ms;
    }
    return 0.0;
  };
}

double idle_fraction(const runtime::Timeline& timeline, int devices) {
  double busy = 0;
  for (const auto& entry : timeline.entries) {
    if (!is_copy(entry.action.kind)) busy += entry.end_ms - entry.start_ms;
  }
  const double available = timeline.step_ms * devices;
  return available > 0 ? 1 - busy / available : 0;
}

}  // namespace stratagem::pipeline
