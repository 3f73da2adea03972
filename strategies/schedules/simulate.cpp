#include "strategies/schedules/simulate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "strategies/schedules/overlap_model.h"

namespace stratagem::schedules {
namespace {

enum class Stream { compute, copies, transfers };

/// One stream of one device: its actions in order, and the one that runs.
struct Lane {
  int device = 0;
  Stream stream = Stream::compute;
  std::vector<Action> actions = {};
  std::size_t next = 0;
  double reached = 0;  // when the one before `next` had ended
  bool running = false;
  Cost cost = {};
  double start = 0;
  double duration = 0;  // at the present speed
  double end = 0;       // at the present speed
};

/// Of each device.
constexpr std::size_t streams = 3;

std::vector<Lane> make_lanes(const Schedule& lowered, bool separate_copy_stream) {
  std::vector<Lane> lanes;
  for (int device = 0; device < lowered.devices(); ++device) {
    Lane compute{.device = device, .stream = Stream::compute};
    Lane copies{.device = device, .stream = Stream::copies};
    Lane transfers{.device = device, .stream = Stream::transfers};
    for (const Action& action : lowered.actions[static_cast<std::size_t>(device)]) {
      const bool overlaps = separate_copy_stream && is_copy(action.kind);
      (overlaps ? copies : compute).actions.push_back(action);
      if (const auto started = transfer_of(action)) transfers.actions.push_back(*started);
    }
    for (Lane* lane : {&compute, &copies, &transfers}) lanes.push_back(std::move(*lane));
  }
  return lanes;
}

class Simulation {
 public:
  Simulation(const Schedule& lowered, const CostFunction& cost, const SimulationOptions& options)
      : lowered_(lowered), cost_(cost), lanes_(make_lanes(lowered, options.separate_copy_stream)) {
    for (const Lane& lane : lanes_) {
      for (const Action& action : lane.actions) {
        if (const auto started = transfer_of(action)) starts_.emplace(*started, action);
      }
    }
  }

  schedules::Timeline run() {
    start_what_can();
    while (const Lane* first = first_to_end()) {
      now_ = first->end;
      end_what_is_due();
      start_what_can();
    }
    std::ranges::stable_sort(timeline_.entries, {}, &schedules::TimelineEntry::device);
    return std::move(timeline_);
  }

 private:
  /// In flight, or waiting for what is.
  const Action* awaited_by(const Action& action) const {
    if (const auto started = starts_.find(action); started != starts_.end()) {
      return &started->second;
    }
    const auto transfer = awaited_transfer(action);
    const auto found = transfer ? starts_.find(*transfer) : starts_.end();
    return found == starts_.end() ? nullptr : &found->first;
  }

  bool is_ready(const Action& action) const {
    const Action* awaited = awaited_by(action);
    if (awaited != nullptr && !ended_.contains(*awaited)) return false;
    return std::ranges::all_of(predecessors(lowered_, action),
                               [this](const Action& needed) { return ended_.contains(needed); });
  }

  void start_what_can() {
    for (Lane& lane : lanes_) {
      if (lane.running || lane.next == lane.actions.size()) continue;
      const Action& action = lane.actions[lane.next];
      if (!is_ready(action)) continue;
      lane.running = true;
      // Waiting for a transfer is an action's own time, as it is on a device.
      lane.start = awaited_transfer(action) ? lane.reached : now_;
      lane.cost = cost_(action);
      lane.duration = lane.cost.alone_ms;
      lane.end = now_ + lane.duration;
    }
    adjust_speeds();
  }

  /// How many of the other devices compute, as a fraction.
  double busy_others(const Lane& lane) const {
    if (lowered_.devices() < 2) return 0;
    const auto busy = std::ranges::count_if(lanes_, [&](const Lane& other) {
      return other.running && other.stream == Stream::compute && other.device != lane.device;
    });
    return static_cast<double>(busy) / (lowered_.devices() - 1);
  }

  const Lane& stream_of(int device, Stream stream) const {
    return lanes_[static_cast<std::size_t>(device) * streams + static_cast<std::size_t>(stream)];
  }

  /// Of the speed that a lane has while the other streams of its device rest.
  double share_of_the_core(const Lane& lane) const {
    const Lane& transfer = stream_of(lane.device, Stream::transfers);
    if (!transfer.running || !stream_of(lane.device, Stream::compute).running) return 1;
    const Speeds speeds = speeds_together(transfer.cost.processor_share);
    if (lane.stream == Stream::copies) return 1;
    return lane.stream == Stream::compute ? speeds.compute : speeds.transfer;
  }

  void adjust_speeds() {
    for (Lane& lane : lanes_) {
      if (!lane.running) continue;
      const double whole =
          lane.cost.alone_ms + (lane.cost.busy_ms - lane.cost.alone_ms) * busy_others(lane);
      const double duration = whole / share_of_the_core(lane);
      if (duration == lane.duration) continue;
      const double left = lane.duration > 0 ? (lane.end - now_) / lane.duration : 1;
      lane.duration = duration;
      lane.end = now_ + left * duration;
    }
  }

  const Lane* first_to_end() const {
    const Lane* first = nullptr;
    for (const Lane& lane : lanes_) {
      if (lane.running && (first == nullptr || lane.end < first->end)) first = &lane;
    }
    return first;
  }

  void end_what_is_due() {
    for (Lane& lane : lanes_) {
      if (!lane.running || lane.end > now_) continue;
      const Action& action = lane.actions[lane.next++];
      lane.running = false;
      lane.reached = now_;
      ended_.insert(action);
      timeline_.entries.push_back({.device = lane.device,
                                   .action = action,
                                   .start_ms = lane.start,
                                   .end_ms = now_,
                                   .awaits_device = awaits_another_device(lowered_, action)});
      timeline_.step_ms = now_;
    }
  }

  const Schedule& lowered_;
  const CostFunction& cost_;
  std::vector<Lane> lanes_;
  std::map<Action, Action> starts_;  // by what is in flight: the action that started it
  std::set<Action> ended_;
  double now_ = 0;
  schedules::Timeline timeline_;
};

}  // namespace

schedules::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
                             const SimulationOptions& options) {
  for_each_in_order(lowered, [](int, const Action&) {});  // refuses what would deadlock
  return Simulation(lowered, cost, options).run();
}

double LinkModel::transfer_ms(double bytes) const {
  constexpr double bytes_per_gigabyte_millisecond = 1e6;
  if (gigabytes_per_second <= 0) return latency_ms;
  return latency_ms + bytes / (gigabytes_per_second * bytes_per_gigabyte_millisecond);
}

CostFunction cost_function(UniformCosts costs) {
  return [costs = std::move(costs)](const Action& action) -> Cost {
    const auto stage = static_cast<std::size_t>(action.stage);
    switch (action.kind) {
      case ActionKind::forward:
        return costs.forward_ms.at(stage);
      case ActionKind::backward:
        return costs.backward_ms.at(stage);
      case ActionKind::backward_input:
      case ActionKind::backward_weight:
        return costs.backward_ms.at(stage) / 2;
      case ActionKind::optimizer:
        return costs.optimizer_ms;
      case ActionKind::copy_input:
        return costs.input_ms;
      default:
        break;
    }
    if (is_copy(action.kind) || is_receive(action.kind)) return costs.transfer_ms;
    // A send costs its receiver; of replicas the simulator knows nothing yet.
    return 0.0;
  };
}

double steady_step_ms(const schedules::Timeline& timeline, int devices) {
  double longest = 0;
  for (int device = 0; device < devices; ++device) {
    std::optional<double> begin;  // of the first action that is no copy
    double brought = 0;           // by copies before that
    double end = 0;
    for (const auto& entry : timeline.entries) {
      if (entry.device != device) continue;
      end = std::max(end, entry.end_ms);
      if (begin) continue;
      if (is_copy(entry.action.kind) || is_receive(entry.action.kind)) {
        brought += entry.end_ms - entry.start_ms;
      } else {
        begin = entry.start_ms;
      }
    }
    longest = std::max(longest, end - begin.value_or(0) + brought);
  }
  return std::min(longest, timeline.step_ms);
}

double mean_step_ms(const schedules::Timeline& timeline, int devices, std::int64_t steps) {
  const double ramp = timeline.step_ms - steady_step_ms(timeline, devices);
  return timeline.step_ms - ramp * static_cast<double>(steps - 1) / static_cast<double>(steps);
}

double idle_fraction(const schedules::Timeline& timeline, int devices) {
  double busy = 0;
  for (const auto& entry : timeline.entries) {
    if (!moves_data(entry.action.kind)) busy += entry.end_ms - entry.start_ms;
  }
  const double available = steady_step_ms(timeline, devices) * devices;
  return available > 0 ? 1 - busy / available : 0;
}

}  // namespace stratagem::schedules
