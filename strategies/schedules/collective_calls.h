// What a rank calls in each of its process groups, in which order. A collective in which the ranks
// of a group do not meet stands still until its time limit; their lists, compared before the first
// step, say at once where they part.
#pragma once

#include <string>
#include <vector>

#include "strategies/costs.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// Which process group of a rank: that of all replicas, of those over which state is sharded, of
/// those that keep the same shard, of the ranks that share layers, of those that sum up norms.
enum class RankGroup { replicas, shards, copies, tensor, norm };

struct Collective {
  RankGroup group = RankGroup::replicas;
  Action action = {};

  bool operator==(const Collective&) const = default;
};

/// The actions of a device's list that belong to a process group, waits among them, in their order.
/// Passes belong to the ranks that share layers, which exchange activations inside of them. Sends
/// and receives belong to none: each meets one of another list.
std::vector<Collective> collectives_of(const Schedule& lowered, int device);

/// In place of each group's calls one number that hardly any others have, nor these in another
/// order.
strategies::CallLists digests_of(const strategies::CallLists& own);

/// The first call of a group that not all its ranks make, of every rank's lists: "rank 0: call 3 in
/// group shards of device 0 (ranks 0, 1) is unshard of stage 2, 64 bytes; that of rank 1 is ...".
/// Empty: there is none.
std::string first_difference(const std::vector<strategies::CallLists>& by_rank);

}  // namespace stratagem::schedules
