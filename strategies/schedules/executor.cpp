#include "strategies/schedules/executor.h"

#include <algorithm>
#include <map>

namespace stratagem::schedules {
namespace {

using runtime::Stream;

Stream stream_of(const Action& action, const runtime::Device& device) {
  return is_copy(action.kind) && device.description().separate_copy_stream ? Stream::copy
                                                                           : Stream::compute;
}

/// Returns the ends of actions of the step before.
std::vector<runtime::EventPointer> ends_of(const Execution& before,
                                           const std::vector<Action>& actions) {
  std::vector<runtime::EventPointer> ends;
  for (const ExecutedAction& entry : before) {
    if (std::ranges::find(actions, entry.action) != actions.end()) ends.push_back(entry.end);
  }
  return ends;
}

}  // namespace

Execution execute(const Schedule& lowered, runtime::DeviceSpan devices,
                  const std::function<void(const Action&)>& perform, int first_device,
                  const Execution& before) {
  struct Enqueued {
    int device;
    Stream stream;
    runtime::EventPointer end;
  };
  std::map<Action, Enqueued> enqueued;
  Execution execution;
  for_each_in_order(lowered, [&](int position, const Action& action) {
    const int index = position - first_device;
    if (index < 0 || index >= static_cast<int>(devices.size())) return;
    runtime::Device& device = *devices[static_cast<std::size_t>(index)];
    const Stream stream = stream_of(action, device);
    all_predecessors(lowered, action, [&](const Action& needed) {
      const auto other = enqueued.find(needed);
      if (other == enqueued.end()) return true;  // another rank's: the receive itself waits for it
      if (other->second.device != index || other->second.stream != stream) {
        device.wait(stream, other->second.end);
      }
      return true;
    });
    if (const auto earlier = lowered.needs_before.find(action);
        earlier != lowered.needs_before.end()) {
      for (const auto& end : ends_of(before, earlier->second)) device.wait(stream, end);
    }
    const runtime::TimedWork events =
        device.enqueue_timed(stream, to_string(action), [perform, action] { perform(action); });
    enqueued.emplace(action, Enqueued{index, stream, events.end});
    execution.push_back({.device = index,
                         .action = action,
                         .start = events.start,
                         .end = events.end,
                         .awaits_device = awaits_another_device(lowered, action)});
  });
  return execution;
}

std::chrono::steady_clock::time_point end_of(const Execution& execution) {
  auto last = std::chrono::steady_clock::time_point::min();
  for (const ExecutedAction& entry : execution) last = std::max(last, entry.end->time());
  return last;
}

schedules::Timeline timeline_of(const std::vector<const Execution*>& executions,
                                std::chrono::steady_clock::time_point origin,
                                std::chrono::steady_clock::time_point end) {
  const auto milliseconds = [&](std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double, std::milli>(std::clamp(time, origin, end) - origin)
        .count();
  };
  schedules::Timeline timeline;
  timeline.step_ms = milliseconds(end);
  for (const Execution* execution : executions) {
    for (const ExecutedAction& entry : *execution) {
      timeline.entries.push_back({.device = entry.device,
                                  .action = entry.action,
                                  .start_ms = milliseconds(entry.start->time()),
                                  .end_ms = milliseconds(entry.end->time()),
                                  .peers_ms = entry.peers ? milliseconds(*entry.peers) : 0,
                                  .awaits_device = entry.awaits_device});
    }
  }
  std::ranges::stable_sort(timeline.entries, [](const auto& a, const auto& b) {
    return a.device != b.device ? a.device < b.device : a.start_ms < b.start_ms;
  });
  return timeline;
}

}  // namespace stratagem::schedules
