// The costs of a step by formula: collectives, FLOPs, the ideal bubble, the memory of the state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// One rank's calls of one collective.
struct CollectiveCount {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;  // the size of the calls' tensors
  std::int64_t wire_bytes = 0;     // the backend's algorithm sends them; 0 in a formula's counts

  bool operator==(const CollectiveCount&) const = default;
  CollectiveCount& operator+=(const CollectiveCount& other) {
    calls += other.calls;
    payload_bytes += other.payload_bytes;
    wire_bytes += other.wire_bytes;
    return *this;
  }
};

/// The counts by collective: "all_reduce", "broadcast", ...
using CommunicationCounts = std::map<std::string, CollectiveCount>;

inline void add(CommunicationCounts& total, const CommunicationCounts& more) {
  for (const auto& [collective, count] : more) total[collective] += count;
}

/// A process group and the calls of each of its ranks, in words and in order. All ranks make the
/// same calls.
struct GroupCalls {
  std::vector<int> ranks;
  std::vector<std::string> calls = {};

  bool operator==(const GroupCalls&) const = default;
};

/// The calls by the group's name.
using CallLists = std::map<std::string, GroupCalls>;

/// The peak of a device's model state by formula [bytes].
struct StateBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;  // the state that it accumulates

  bool operator==(const StateBytes&) const = default;
  StateBytes& operator+=(const StateBytes& other) {
    parameters += other.parameters;
    gradients += other.gradients;
    optimizer += other.optimizer;
    return *this;
  }
};

/// The costs of a step by formula.
struct Costs {
  CommunicationCounts collectives;  // per rank and step
  double flops = 0;                 // the whole job's, each forward pass counted once
  double recomputed_flops = 0;      // the whole job's, of repeated forward passes
  double ideal_bubble = 0;          // fraction of the step
  int stages = 1;
  int live_micro_batches = 1;           // the most on this rank's devices
  double attention_imbalance = 0;       // the most pairs of query and key on a rank over the mean;
                                        // 0: ranks share no positions
  std::vector<StateBytes> memory = {};  // [device of this rank]; empty: there is no formula
  CallLists calls = {};                 // per rank and step, without exchanges of two ranks
};

}  // namespace stratagem::strategies
