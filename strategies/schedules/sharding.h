// Sharding of model state over replicas, as actions that a pure function adds to any schedule
// (ZeRO: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", sections 5 and 7; FSDP: Zhao et al. 2023).
//
// A stage is cut into groups of layers, which are stages of their own on the same device. So the
// forward and backward pass of a group are actions, and what is to happen before and after them
// stands in the schedule, not in hooks. A visit is one use of a group's parameters: by the forward
// pass of a micro-batch, or by its backward pass.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "strategies/runtime/choice.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// The state that is spread over the replicas, each of which holds one part. Each level includes
/// those before it.
using Sharded = runtime::Choice<"none", "optimizer", "gradients", "parameters">;

struct Sharding {
  Sharded sharded = "optimizer";
  /// Parameters that are sharded are freed after each visit, and not only after a step's last.
  bool reshard_after_forward = true;
  /// So many visits ahead the next group's parameters are asked for; 0: when they are needed.
  int prefetch = 1;
  /// Other ranks keep the same part, or, where nothing is sharded, the whole: its gradient is added
  /// to theirs after its last reduce-scatter, or after its last backward pass.
  bool copies = false;
  /// Groups without parameters.
  std::set<int> empty = {};
  /// Each device's buffers are taken over from the first replica before all else.
  bool with_buffers = false;
};

/// Each stage cut into `groups`[stage] stages on its device, one or more. Of a lowered schedule
/// that has nothing added to it; the result is lowered.
Schedule cut_into_groups(const Schedule& lowered, const std::vector<int>& groups);

/// Adds, for each group: the gathering of its parameters (U, UW) before the first visit after an
/// update and, where parameters are sharded, before each for which they are not whole any more,
/// which X says; the reduce-scatter of its gradients (RS, R) after its last backward pass, or,
/// where gradients are sharded, after each; behind the last, where there are copies, the sum over
/// them (AS, AW); and its update as soon as its gradients are there. One reduce-scatter, and the
/// sum of the group before, are in flight while the next group's backward pass runs. Where nothing
/// is sharded there are the sums alone, which are waited for behind the last pass. A send of the
/// passes goes first. Also of a schedule of forward passes alone. The result is
/// valid by validate_sharding().
Schedule add_sharding(const Schedule& lowered, const Sharding& sharding);

/// Throws std::invalid_argument, with the grid, unless every pass of a group finds its parameters
/// whole, each gathering is waited for and none begins while they are in use, no more than
/// `prefetch` + 1 groups are whole at once where parameters are sharded and freed after each visit,
/// every gradient is scattered once and after it was made, at most two of a device's scatters and
/// one of a group's are unfinished, every sum over copies follows its group's last scatter, at most
/// two of them are unfinished where something is sharded, and every update follows its group's last
/// one.
void validate_sharding(const Schedule& schedule, const Sharding& sharding);

}  // namespace stratagem::schedules
