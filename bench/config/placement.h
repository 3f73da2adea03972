// Placement arranges a row's devices and spreads them over processes, from what its strategy
// declares and what the user asks for. It also decides which samples they have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/config/config.h"
#include "strategies/plan.h"
#include "strategies/ranks/mesh.h"

namespace stratagem::bench {

struct Catalogue;

struct Placement {
  ranks::Mesh mesh;  // all devices of the row
  int ranks = 1;     // processes; each has the same number of consecutive devices

  int devices() const { return mesh.size(); }
  int devices_per_rank() const { return mesh.size() / ranks; }
  int replicas() const { return mesh.size("data"); }
  /// Returns the number of devices for a replica's stages; each has one or several.
  int pipeline_devices() const { return mesh.size("pipeline"); }
  /// Returns the number of ranks that share every layer.
  int tensor_ranks() const { return mesh.size("tensor"); }
  /// Returns the number of ranks that share every sample's positions.
  int context_ranks() const { return mesh.size("context"); }
  /// Returns 1 also if one process has several replicas.
  int ranks_per_replica() const { return std::max(ranks / replicas(), 1); }
  /// Returns the number of processes for a replica's stages.
  int pipeline_ranks() const { return ranks_per_replica() / (tensor_ranks() * context_ranks()); }
  int replica_of(int rank) const { return coordinate(rank, "data"); }
  /// Returns the rank's index in its pipeline.
  int pipeline_rank_of(int rank) const { return coordinate(rank, "pipeline") / devices_per_rank(); }
  /// Returns the coordinate of the rank's first device.
  int coordinate(int rank, std::string_view dimension) const {
    return mesh.coordinate(rank * devices_per_rank(), dimension);
  }
  /// Returns the index of the rank's group if neighbouring replicas form `groups` groups, each of
  /// which shards the whole state.
  int shard_group_of(int rank, int groups) const {
    return replica_of(rank) / (replicas() / groups);
  }

  /// Returns the ranks that differ from `rank` only in these dimensions, itself included,
  /// ascending: over data, ranks with the same parts of the same stages and other samples; over
  /// pipeline, ranks with the same parts of other stages; over context, ranks with other positions
  /// of the same samples; over tensor, ranks that share its layers.
  std::vector<int> group(int rank, std::initializer_list<std::string_view> dimensions) const;
};

/// Returns the mesh of a row with --mesh auto whose strategy spreads over these dimensions; empty
/// if it cannot have that number of devices.
std::optional<ranks::Mesh> usual_mesh(const std::vector<std::string>& dimensions, int devices);

/// Returns the number of processes for a mesh if --ranks does not decide it.
int usual_ranks(const ranks::Mesh& mesh);

/// Returns what is sharded over the row's replicas: none, optimizer, gradients or parameters.
schedules::Sharded sharded_state(const Config& config);

/// Returns how many replicas keep the same part of the row's state.
int copies_of(const Config& config);

/// Returns the backend of the row's collectives: gloo or nccl.
runtime::Choice<"gloo", "nccl"> backend_of(const Config& config);

/// Returns true if the row's loss is scaled, so that its updates need the norm of the gradients.
bool scales_loss(const Config& config);

/// Returns the request of the row's plan. Without `parts` the plan has the row's stages and
/// micro-batches, and one group of layers a stage. Throws like placement_of().
strategies::PlanRequest plan_request(const Config& config, strategies::ModelParts parts = {});

/// Returns what the row's strategy decides about its plan.
strategies::PlanOutline outline_of(const Config& config);

/// Returns the plan of each of the row's steps, for the first replica.
strategies::StepPlan plan_of(const Config& config, strategies::ModelParts parts = {});

/// Returns the stages of a replica: for each device the schedule's number or the user's.
int stages_of(const Config& config);

/// Returns whether the strategy can train the model, and the model has a layer for every stage.
/// Throws like placement_of().
bool can_train(const Config& config, const Catalogue& catalogue);
/// Returns whether a pipeline of the row's devices splits backward passes in this schedule. Throws
/// like placement_of().
bool splits_backward(const Config& config, const std::string& schedule);

/// Throws std::invalid_argument, one line with the option, if devices, mesh and ranks do not fit
/// one another or the strategy.
Placement placement_of(const Config& config);

/// Returns the parts of the batch that the row computes, those of all replicas in order. Throws
/// std::invalid_argument if there are fewer samples than parts.
std::vector<schedules::Slice> partition_of(const Config& config);
/// Returns the parts that count in the loss. A replica may have other parts, so that it exchanges
/// as often as replicas with more samples.
std::vector<schedules::Slice> slices_of(const Config& config);
/// Returns the samples of each of these parts.
std::vector<std::int64_t> micro_batch_sizes(const Config& config);

}  // namespace stratagem::bench
