// Schedule: each device's ordered actions. It is a value that can be printed, validated, simulated,
// executed and drawn, and no strategy has a loop of its own.
//
// A generator writes the compute order (F and B, or F, I and W); `lower` (lowering.h) adds data
// transfers, the optimizer, and the dependencies.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

/// Maps an action to those that must end before it starts, besides earlier ones in its device's
/// list.
using Edges = std::map<Action, std::vector<Action>>;

/// A condition on an action.
using ActionTest = std::function<bool(const Action&)>;

struct Schedule {
  std::string name;
  int micro_batches = 1;
  bool split_backward = false;               // I and W instead of B
  std::vector<int> device_of_stage;          // [stage]
  std::vector<int> rank_of_device = {};      // [device]; empty: all belong to one process
  std::vector<std::vector<Action>> actions;  // [device], in the order of execution
  bool stages_follow_one_another = false;    // lower() sets it: most needs follow from the stages
  Edges needs = {};                          // the other needs
  Edges needs_before = {};                   // needs of actions of the step before
  std::set<int> not_updated = {};            // stages that no optimizer updates: copies of others
  std::set<int> not_trained = {};            // stages without samples: others make their gradients

  int stages() const { return static_cast<int>(device_of_stage.size()); }
  int devices() const { return static_cast<int>(actions.size()); }
  /// Return the kinds that make the gradients of a stage's input, and of its weights.
  ActionKind input_gradient_kind() const;
  ActionKind weight_gradient_kind() const;
};

/// Returns whether `test` holds for each action that must have ended before `action` starts. It
/// stops at the first one for which the test fails. It allocates nothing, so a schedule of a
/// million actions stores no list for each of them.
bool all_predecessors(const Schedule& lowered, const Action& action, const ActionTest& test);

/// Returns the same actions as a list.
std::vector<Action> predecessors(const Schedule& lowered, const Action& action);

/// Returns whether `test` holds for each action that brings data to the device just before
/// `action`: a copy from the host, and a copy or a receive if the neighbouring stage is elsewhere.
bool all_copies_before(const Schedule& compute, const Action& action, const ActionTest& test);

/// Return whether both stages are on one device, or on devices of one rank.
bool same_device(const Schedule& schedule, int stage, int other);
bool same_rank(const Schedule& schedule, int stage, int other);
int rank_of_stage(const Schedule& schedule, int stage);

/// Returns whether it waits for another device, directly or through its transfer from there.
bool awaits_another_device(const Schedule& lowered, const Action& action);

/// Visits actions once, in an order that respects every device's list and all predecessors, until
/// no action can go next. Returns [device]: the number of its actions that were visited.
std::vector<std::size_t> visit_until_stuck(
    const Schedule& lowered, const std::function<void(int device, const Action&)>& visit);

/// Visits every action once, in an order that respects every device's list and all predecessors.
/// Throws std::invalid_argument with the grid if no action can go next (a deadlock), or if an
/// action waits for one that the schedule lacks.
void for_each_in_order(const Schedule& lowered,
                       const std::function<void(int device, const Action&)>& visit);

/// A rule that a schedule breaks, besides deadlocks.
struct Fault {
  std::string why;                        // "0F1 appears twice"
  int device = 0;                         // has the action, or lacks it
  std::optional<std::size_t> place = {};  // in the device's list; none if it lacks the action
};

/// Returns the first fault of the devices' lists, if there is one.
std::optional<Fault> first_fault(const Schedule& lowered);

/// Throws std::invalid_argument, with the grid, unless every stage runs every micro-batch's forward
/// and backward (or both its halves) exactly once, on its own device, and updates its parameters,
/// and nothing can deadlock.
void validate(const Schedule& lowered);

/// Returns one line a device: "device 0 | 0F0 0F1 0B0 0B1".
std::string grid(const Schedule& schedule);

/// Returns [device]: the most micro-batches, of all its stages, whose activations a device holds at
/// once: from F to B, or to W.
std::vector<int> peak_live_micro_batches(const Schedule& schedule);

}  // namespace stratagem::schedules
