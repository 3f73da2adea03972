#include "strategies/schedules/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>
#include <stdexcept>
#include <utility>

#include "strategies/schedules/action_set.h"

namespace stratagem::schedules {
namespace {

enum class Stream { compute, copies, transfers };

/// The number of streams of each device.
constexpr std::size_t streams = 3;

/// One stream of one device: its actions in order and the running one.
struct Lane {
  int device = 0;
  Stream stream = Stream::compute;
  std::vector<Action> own = {};  // empty if `actions` is the device's list
  std::span<const Action> actions = {};
  std::size_t next = 0;
  double reached = 0;  // the end of the action before `next`
  bool running = false;
  Cost cost = {};
  double start = 0;
  double duration = 0;  // at the present speed
  double end = 0;       // at the present speed
  Action awaited = {};  // an unfinished need if the lane does not run
};

/// The speeds of a computation and a transfer that share a core, as fractions of their own speeds.
struct Speeds {
  double compute = 1;
  double transfer = 1;
};

/// Shares the core fairly: the transfer gets what it needs, at most half of it.
Speeds speeds_together(double processor_share) {
  constexpr double fair_share = 0.5;
  const double granted = std::min(processor_share, fair_share);
  const double speed = processor_share > 0 ? granted / processor_share : 1.0;
  return {.compute = 1 - granted, .transfer = std::min(speed, 1.0)};
}

std::vector<Lane> make_lanes(const Schedule& lowered, bool separate_copy_stream) {
  std::vector<Lane> lanes;
  for (int device = 0; device < lowered.devices(); ++device) {
    const auto& actions = lowered.actions[static_cast<std::size_t>(device)];
    Lane compute{.device = device, .stream = Stream::compute};
    Lane copies{.device = device, .stream = Stream::copies};
    Lane transfers{.device = device, .stream = Stream::transfers};
    for (const Action& action : actions) {
      if (separate_copy_stream) {
        (is_copy(action.kind) ? copies : compute).own.push_back(action);
      }
      if (const auto started = transfer_of(action)) transfers.own.push_back(*started);
    }
    for (Lane* lane : {&compute, &copies, &transfers}) {
      lanes.push_back(std::move(*lane));
      lanes.back().actions = lanes.back().own;
    }
    if (!separate_copy_stream) lanes[lanes.size() - streams].actions = actions;
  }
  return lanes;
}

/// Each event ends the actions that are due, starts those that waited for them, and adjusts the
/// affected speeds. It looks only at the lanes concerned, so an action's cost does not depend on
/// the number of devices, apart from the logarithm in a heap. If costs depend on the number of busy
/// devices, an event looks at all running lanes.
class Simulation {
 public:
  Simulation(const Schedule& lowered, const CostFunction& cost, const SimulationOptions& options)
      : lowered_(lowered),
        cost_(cost),
        lanes_(make_lanes(lowered, options.separate_copy_stream)),
        in_flight_(lowered.actions),
        ended_(lowered.actions),
        waiting_(static_cast<std::size_t>(lowered.devices())) {
    for (const Lane& lane : lanes_) {
      if (lane.stream == Stream::compute) first_entry_.push_back(entries_);
      entries_ += lane.actions.size();
      if (lane.stream != Stream::transfers) continue;
      for (const Action& action : lane.actions) in_flight_.insert(action);
    }
    timeline_.entries.resize(entries_);
  }

  schedules::Timeline run() {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) start_or_wait(lane);
    adjust_speeds();
    while (!ends_.empty()) {
      if (!is_current(ends_.top())) {
        ends_.pop();
        continue;
      }
      now_ = ends_.top().time;
      end_what_is_due();
      start_what_can();
      adjust_speeds();
    }
    return std::move(timeline_);
  }

  /// Returns whether all actions have ended; otherwise the schedule has a deadlock.
  bool is_complete() const {
    return std::ranges::all_of(lanes_,
                               [](const Lane& lane) { return lane.next == lane.actions.size(); });
  }

 private:
  /// The end of a lane's action unless its speed changes before.
  struct End {
    double time;
    std::size_t lane;
    bool operator>(const End& other) const { return time > other.time; }
  };

  bool is_current(const End& end) const {
    return lanes_[end.lane].running && lanes_[end.lane].end == end.time;
  }

  bool has_ended(Lane& lane, const Action& needed) const {
    if (ended_.contains(needed)) return true;
    lane.awaited = needed;
    return false;
  }

  /// Returns whether all needs of the lane's next action have ended; otherwise sets `awaited`.
  bool is_ready(Lane& lane) const {
    const Action& action = lane.actions[lane.next];
    if (lane.stream == Stream::transfers) return has_ended(lane, starter_of(action));
    const auto transfer = awaited_transfer(action);
    if (transfer && in_flight_.contains(*transfer) && !has_ended(lane, *transfer)) return false;
    return all_predecessors(lowered_, action,
                            [&](const Action& needed) { return has_ended(lane, needed); });
  }

  void start_or_wait(std::size_t index) {
    Lane& lane = lanes_[index];
    if (lane.next == lane.actions.size()) return;
    const Action& action = lane.actions[lane.next];
    if (!is_ready(lane)) {
      waiting_[device_of(lane.awaited)].push_back(index);
      return;
    }
    lane.running = true;
    // Waiting for a transfer counts as an action's own time, as on a device.
    lane.start = awaited_transfer(action) ? lane.reached : now_;
    lane.cost = cost_(action);
    lane.duration = lane.cost.alone_ms;
    lane.end = now_ + lane.duration;
    count_running(lane, 1);
    started_.push_back(index);
  }

  /// Starts lanes whose last action has ended and lanes that waited for an ended one.
  void start_what_can() {
    std::vector<std::size_t>& candidates = candidates_;
    candidates = due_;
    for (const std::size_t ended : due_) {
      auto& waiting = waiting_[static_cast<std::size_t>(lanes_[ended].device)];
      std::erase_if(waiting, [&](std::size_t lane) {
        const bool goes = ended_.contains(lanes_[lane].awaited);
        if (goes) candidates.push_back(lane);
        return goes;
      });
    }
    for (const std::size_t lane : candidates) start_or_wait(lane);
  }

  std::size_t device_of(const Action& action) const {
    return static_cast<std::size_t>(
        lowered_.device_of_stage.at(static_cast<std::size_t>(action.stage)));
  }

  static bool is_contended(const Lane& lane) { return lane.cost.busy_ms != lane.cost.alone_ms; }

  void count_running(const Lane& lane, int change) {
    if (lane.stream == Stream::compute) computing_ += change;
    if (is_contended(lane)) contended_ += change;
  }

  /// Returns the fraction of the other devices that compute.
  double busy_others(const Lane& lane) const {
    if (lowered_.devices() < 2) return 0;
    const int busy = computing_ - (stream_of(lane.device, Stream::compute).running ? 1 : 0);
    return static_cast<double>(busy) / (lowered_.devices() - 1);
  }

  const Lane& stream_of(int device, Stream stream) const {
    return lanes_[static_cast<std::size_t>(device) * streams + static_cast<std::size_t>(stream)];
  }

  /// Returns the fraction of the speed that a lane has if its device's other streams rest.
  double share_of_the_core(const Lane& lane) const {
    const Lane& transfer = stream_of(lane.device, Stream::transfers);
    if (!transfer.running || !stream_of(lane.device, Stream::compute).running) return 1;
    const Speeds speeds = speeds_together(transfer.cost.processor_share);
    if (lane.stream == Stream::copies) return 1;
    return lane.stream == Stream::compute ? speeds.compute : speeds.transfer;
  }

  /// Adjusts the lanes of devices on which an action has ended or started, and all lanes if some
  /// costs depend on the number of busy devices.
  void adjust_speeds() {
    if (contended_ > 0) {
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) adjust_speed(lane);
    } else {
      for (const auto* changed : {&due_, &started_}) {
        for (const std::size_t lane : *changed) {
          const std::size_t first = lane - lane % streams;
          for (std::size_t own = first; own < first + streams; ++own) adjust_speed(own);
        }
      }
    }
    for (const std::size_t lane : started_) ends_.push({lanes_[lane].end, lane});
    started_.clear();
  }

  void adjust_speed(std::size_t index) {
    Lane& lane = lanes_[index];
    if (!lane.running) return;
    const double whole =
        lane.cost.alone_ms + (lane.cost.busy_ms - lane.cost.alone_ms) * busy_others(lane);
    const double duration = whole / share_of_the_core(lane);
    if (duration == lane.duration) return;
    const double left = lane.duration > 0 ? (lane.end - now_) / lane.duration : 1;
    lane.duration = duration;
    lane.end = now_ + left * duration;
    ends_.push({lane.end, index});
  }

  void end_what_is_due() {
    due_.clear();
    while (!ends_.empty() && ends_.top().time <= now_) {
      if (is_current(ends_.top())) {
        due_.push_back(ends_.top().lane);
        end(lanes_[ends_.top().lane]);
      }
      ends_.pop();
    }
    std::ranges::sort(due_);
    for (const std::size_t lane : due_) write_entry(lanes_[lane]);
  }

  void end(Lane& lane) {
    count_running(lane, -1);
    lane.running = false;
    lane.reached = now_;
    ended_.insert(lane.actions[lane.next]);
  }

  void write_entry(Lane& lane) {
    const Action& action = lane.actions[lane.next++];
    timeline_.entries[first_entry_[static_cast<std::size_t>(lane.device)]++] = {
        .device = lane.device,
        .action = action,
        .start_ms = lane.start,
        .end_ms = now_,
        .awaits_device = awaits_another_device(lowered_, action)};
    timeline_.step_ms = now_;
  }

  const Schedule& lowered_;
  const CostFunction& cost_;
  std::vector<Lane> lanes_;
  ActionSet in_flight_;
  ActionSet ended_;
  std::vector<std::vector<std::size_t>> waiting_;  // [device of the awaited action]: lanes
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::size_t> due_;         // lanes whose action ends now
  std::vector<std::size_t> started_;     // lanes whose action starts now
  std::vector<std::size_t> candidates_;  // lanes that may start now
  int computing_ = 0;                    // lanes of computation that run
  int contended_ = 0;                    // running lanes whose costs depend on the busy devices
  std::size_t entries_ = 0;
  std::vector<std::size_t> first_entry_;  // [device]: the index of its next entry
  double now_ = 0;
  schedules::Timeline timeline_;
};

}  // namespace

schedules::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
                             const SimulationOptions& options) {
  Simulation simulation(lowered, cost, options);
  schedules::Timeline timeline = simulation.run();
  if (simulation.is_complete()) return timeline;
  for_each_in_order(lowered, [](int, const Action&) {});  // names the deadlock
  throw std::logic_error("a simulation ended before its schedule");
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
    // A send costs its receiver; the simulator has no costs of replicas yet.
    return 0.0;
  };
}

double steady_step_ms(const schedules::Timeline& timeline, int devices) {
  struct Span {
    bool begun = false;
    double begin = 0;    // the start of the first action that is not a copy
    double brought = 0;  // the duration of earlier copies
    double end = 0;
  };
  std::vector<Span> spans(static_cast<std::size_t>(devices));
  for (const auto& entry : timeline.entries) {
    if (entry.device >= devices) continue;
    Span& span = spans[static_cast<std::size_t>(entry.device)];
    span.end = std::max(span.end, entry.end_ms);
    if (span.begun) continue;
    if (is_copy(entry.action.kind) || is_receive(entry.action.kind)) {
      span.brought += entry.end_ms - entry.start_ms;
    } else {
      span.begun = true;
      span.begin = entry.start_ms;
    }
  }
  double longest = 0;
  for (const Span& span : spans) {
    longest = std::max(longest, span.end - span.begin + span.brought);
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
