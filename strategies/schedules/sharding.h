// Sharding of model state over replicas, as actions that a pure function adds to any schedule
// (ZeRO: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
// Models", sections 5 and 7; FSDP: Zhao et al. 2023).
//
// A stage is cut into groups of layers, which are stages of their own on the same device. So the
// forward and backward pass of a group are actions, and the work before and after them is in the
// schedule, not in hooks. A visit is one use of a group's parameters by the forward pass of a
// micro-batch, or by its backward pass.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "strategies/runtime/choice.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// The state that is spread over the replicas, one part each. Each level includes the earlier ones.
using Sharded = runtime::Choice<"none", "optimizer", "gradients", "parameters">;

struct Sharding {
  Sharded sharded = "optimizer";
  /// Frees sharded parameters after each visit, and not only after a step's last.
  bool reshard_after_forward = true;
  /// The number of visits in advance at which the next group is gathered; 0: when it is needed.
  int prefetch = 1;
  /// Other ranks keep the same part, or, if nothing is sharded, the whole. Gradients are summed
  /// over them after a group's last reduce-scatter, or after its last backward pass.
  bool copies = false;
  /// Groups without parameters.
  std::set<int> empty = {};
  /// Copies each device's buffers from the first replica before all else.
  bool with_buffers = false;
};

/// Cuts each stage into `groups`[stage] stages on its device, one or more. `lowered` must have no
/// additions; the result is lowered.
Schedule cut_into_groups(const Schedule& lowered, const std::vector<int>& groups);

/// Adds, for each group: the gathering of its parameters (U, UW) before the first visit after an
/// update and, if parameters are sharded, before each visit that finds them freed by an X; the
/// reduce-scatter of its gradients (RS, R) after its last backward pass, or, if gradients are
/// sharded, after each; after the last one the sum over copies (AS, AW), if there are any; and its
/// update as soon as its gradients are there. One reduce-scatter, and the sum of the group before,
/// are in flight while the next group's backward pass runs. If nothing is sharded there are only
/// the sums, with waits after the last pass. A send of the passes goes first. It also takes a
/// schedule of forward passes only. The result is valid by validate_sharding().
Schedule add_sharding(const Schedule& lowered, const Sharding& sharding);

/// Throws std::invalid_argument, with the grid, unless every pass of a group finds its parameters
/// whole, each gathering has a wait and none begins while the parameters are in use, no more than
/// `prefetch` + 1 groups are whole at once if parameters are sharded and freed after each visit,
/// every gradient is scattered once and after it was made, at most two of a device's scatters and
/// one of a group's are unfinished, every sum over copies follows its group's last scatter, at most
/// two of them are unfinished if something is sharded, and every update follows its group's last
/// one.
void validate_sharding(const Schedule& schedule, const Sharding& sharding);

}  // namespace stratagem::schedules
