// Executor: runs any schedule on a group of devices.
//
// It enqueues every action on its stage's device behind the events that it depends on and returns
// at once; nothing is synchronised with the host. What an action does is the caller's callback, so
// this file knows no tensor. Cost: two events and one queue entry an action, a few microseconds.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "strategies/runtime/device.h"
#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::schedules {

/// An action that was enqueued, and the events around it.
struct ExecutedAction {
  int device = 0;
  Action action;
  runtime::EventPointer start;
  runtime::EventPointer end;
  bool awaits_device = false;  // see awaits_another_device()
  /// Of a collective: when its last peer had come to it. Of a receive: when the data was sent.
  std::optional<std::chrono::steady_clock::time_point> peers = {};
};

using Execution = std::vector<ExecutedAction>;

/// Enqueues the actions of the schedule's devices first_device, first_device + 1, ..., which are
/// devices[0], devices[1], ... and count from 0 in the execution; the others are another rank's.
/// `lowered` must be valid. `perform` runs on the device's thread. `before` is the step before, for
/// what the schedule needs of it.
Execution execute(const Schedule& lowered, runtime::DeviceSpan devices,
                  const std::function<void(const Action&)>& perform, int first_device = 0,
                  const Execution& before = {});

/// The last moment at which any action of the execution ended. Valid after synchronisation.
std::chrono::steady_clock::time_point end_of(const Execution& execution);

/// The entries of the executions relative to `origin`, up to `end`; each device in order.
schedules::Timeline timeline_of(const std::vector<const Execution*>& executions,
                                std::chrono::steady_clock::time_point origin,
                                std::chrono::steady_clock::time_point end);

}  // namespace stratagem::schedules
