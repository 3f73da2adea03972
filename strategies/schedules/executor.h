// Executor: runs any schedule on a group of devices.
//
// It enqueues every action on its stage's device behind the events that it depends on and returns
// at once, without synchronising with the host. The caller's callback performs an action, so this
// file needs no tensor. The cost is two events and one queue entry an action, a few microseconds.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "strategies/runtime/device.h"
#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::schedules {

/// An enqueued action and the events around it.
struct ExecutedAction {
  int device = 0;
  Action action;
  runtime::EventPointer start;
  runtime::EventPointer end;
  bool awaits_device = false;  // see awaits_another_device()
  /// A collective's last peer's arrival, or the time when a receive's data was sent.
  std::optional<std::chrono::steady_clock::time_point> peers = {};
};

using Execution = std::vector<ExecutedAction>;

/// Enqueues the actions of the schedule's devices first_device, first_device + 1, ..., which are
/// devices[0], devices[1], ... and count from 0 in the execution; the others are another rank's.
/// `lowered` must be valid. `perform` runs on the device's thread. `before` is the previous step,
/// on which the schedule may depend.
Execution execute(const Schedule& lowered, runtime::DeviceSpan devices,
                  const std::function<void(const Action&)>& perform, int first_device = 0,
                  const Execution& before = {});

/// Returns the end of the execution's last action. Valid after synchronisation.
std::chrono::steady_clock::time_point end_of(const Execution& execution);

/// Returns the executions' entries relative to `origin`, up to `end`; each device's in order.
schedules::Timeline timeline_of(const std::vector<const Execution*>& executions,
                                std::chrono::steady_clock::time_point origin,
                                std::chrono::steady_clock::time_point end);

}  // namespace stratagem::schedules
