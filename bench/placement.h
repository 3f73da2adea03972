// Placement: how a row's devices are arranged and spread over processes, from what its strategy
// says of itself and what the user asks for.
#pragma once

#include "bench/config.h"
#include "strategies/runtime/mesh.h"

namespace stratagem::bench {

struct Placement {
  runtime::Mesh mesh;  // of all devices of the row
  int ranks = 1;       // processes; each has as many consecutive devices of the mesh

  int devices() const { return mesh.size(); }
  int devices_per_rank() const { return mesh.size() / ranks; }
  int replicas() const { return mesh.size("data"); }
  int stages() const { return mesh.size("pipeline"); }
  /// Processes that a replica's stages are spread over.
  int pipeline_ranks() const { return ranks / replicas(); }
  int replica_of(int rank) const { return rank / pipeline_ranks(); }

  /// The ranks that hold the same stages as `rank`, one of each replica.
  std::vector<int> data_group(int rank) const;
  /// The ranks that share a replica with `rank`, in the order of their stages.
  std::vector<int> pipeline_group(int rank) const;
};

/// Throws std::invalid_argument, one line with the option, where devices, mesh and ranks do not fit
/// one another or the strategy.
Placement placement_of(const Config& config);

}  // namespace stratagem::bench
