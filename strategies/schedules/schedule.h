// Schedule: which device runs which action, in which order. A value: it can be printed, validated,
// simulated, executed and drawn, and no strategy has a loop of its own.
//
// A generator writes the compute order (F and B, or F, I and W); `lower` adds what moves data and
// the optimizer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

struct Schedule {
  std::string name;
  int micro_batches = 1;
  bool split_backward = false;               // I and W in place of B
  std::vector<int> device_of_stage;          // [stage]
  std::vector<int> rank_of_device = {};      // [device]; empty: all belong to one process
  std::vector<std::vector<Action>> actions;  // [device], in the order of execution

  int stages() const { return static_cast<int>(device_of_stage.size()); }
  int devices() const { return static_cast<int>(actions.size()); }
};

/// Adds the copies from the host, those between stages on different devices (made by the receiver,
/// just before the action that needs them; between devices of different ranks a send just after the
/// action that makes the data and a receive before the one that needs it) and one optimizer action
/// a stage at the end.
Schedule lower(const Schedule& compute);

/// Adds what keeps the replicas of every stage alike: the gradients' all-reduce before each
/// optimizer action and, where `with_buffers`, a broadcast of the buffers before all else.
Schedule add_replication(const Schedule& lowered, bool with_buffers);

/// Adds the sum, over the ranks that share layers, of gradients of which each has a partial sum,
/// before each optimizer action.
Schedule add_gradient_reduction(const Schedule& lowered);

/// The forward passes alone, with the copies that they need: what an evaluation runs.
Schedule forward_only(const Schedule& lowered);

/// The actions that must have ended before `action` starts, apart from those earlier in its own
/// device's list. `action` belongs to a lowered schedule.
std::vector<Action> predecessors(const Schedule& lowered, const Action& action);

/// Visits every action once, in an order that respects every device's list and all predecessors.
/// Throws std::invalid_argument with the grid when no action can go next (a deadlock), and when an
/// action waits for one that the schedule lacks.
void for_each_in_order(const Schedule& lowered,
                       const std::function<void(int device, const Action&)>& visit);

/// Throws std::invalid_argument, with the grid, unless every stage runs every micro-batch's
/// forward and backward (or both its halves) exactly once, on its own device, and updates its
/// parameters, and nothing can deadlock.
void validate(const Schedule& lowered);

/// One line a device: "device 0 | 0F0 0F1 0B0 0B1".
std::string grid(const Schedule& schedule);

/// The largest number of micro-batches, of all its stages, whose activations a device holds at
/// once, [device]: from F to B, or to W.
std::vector<int> peak_live_micro_batches(const Schedule& schedule);

}  // namespace stratagem::schedules
