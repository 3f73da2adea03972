// The ordered calls of a rank in each of its process groups. A collective that the ranks of a group
// do not all call blocks until its time limit; comparing their lists before the first step finds
// the difference at once.
#pragma once

#include <string>
#include <vector>

#include "strategies/costs.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// A rank's process groups: all replicas, those that shard state, those that keep the same shard,
/// the ranks that share layers, those that sum norms.
enum class RankGroup { replicas, shards, copies, tensor, norm };

struct Collective {
  RankGroup group = RankGroup::replicas;
  Action action = {};

  bool operator==(const Collective&) const = default;
};

/// Returns the actions of a device's list that belong to a process group, including waits, in
/// order. Passes belong to the ranks that share layers, which exchange activations inside them.
/// Sends and receives belong to none: each meets one of another list.
std::vector<Collective> collectives_of(const Schedule& lowered, int device);

/// Replaces each group's calls by a hash of them and their order.
strategies::CallLists digests_of(const strategies::CallLists& own);

/// Returns the first call of a group that not all its ranks make, from every rank's lists: "rank 0:
/// call 3 in group shards of device 0 (ranks 0, 1) is unshard of stage 2, 64 bytes; that of rank 1
/// is ...", or an empty string.
std::string first_difference(const std::vector<strategies::CallLists>& by_rank);

}  // namespace stratagem::schedules
