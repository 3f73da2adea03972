// What a step costs by formula: collectives, FLOPs, the ideal bubble, the memory of the state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stratagem::strategies {

/// Calls of one collective by one rank.
struct CollectiveCount {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;  // handed to the calls
  std::int64_t wire_bytes = 0;     // sent by the backend's algorithm; 0 in a formula's counts

  bool operator==(const CollectiveCount&) const = default;
  CollectiveCount& operator+=(const CollectiveCount& other) {
    calls += other.calls;
    payload_bytes += other.payload_bytes;
    wire_bytes += other.wire_bytes;
    return *this;
  }
};

/// By collective: "all_reduce", "broadcast", ...
using CommunicationCounts = std::map<std::string, CollectiveCount>;

inline void add(CommunicationCounts& total, const CommunicationCounts& more) {
  for (const auto& [collective, count] : more) total[collective] += count;
}

/// A process group, and what each of its ranks calls in it, in words and in order: all call the
/// same.
struct GroupCalls {
  std::vector<int> ranks;
  std::vector<std::string> calls = {};

  bool operator==(const GroupCalls&) const = default;
};

/// By the group's name.
using CallLists = std::map<std::string, GroupCalls>;

/// What a device holds of the model's state, by formula, when it holds most of it [bytes].
struct StateBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;  // what it accumulates

  bool operator==(const StateBytes&) const = default;
  StateBytes& operator+=(const StateBytes& other) {
    parameters += other.parameters;
    gradients += other.gradients;
    optimizer += other.optimizer;
    return *this;
  }
};

/// What a step costs by formula.
struct Costs {
  CommunicationCounts collectives;  // of a rank and step
  double flops = 0;                 // of the whole job
  double ideal_bubble = 0;          // fraction of the step
  int stages = 1;
  int live_micro_batches = 1;           // at most, on this rank's devices
  std::vector<StateBytes> memory = {};  // [device of this rank]; empty: there is no formula
  CallLists calls = {};                 // of a rank and step; not what only two ranks exchange
};

}  // namespace stratagem::strategies
