// Placement: how a row's devices are arranged and spread over processes, and which samples they
// have, from what its strategy says of itself and what the user asks for.
#pragma once

#include <algorithm>
#include <cstdint>
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
  ranks::Mesh mesh;  // of all devices of the row
  int ranks = 1;     // processes; each has as many consecutive devices of the mesh

  int devices() const { return mesh.size(); }
  int devices_per_rank() const { return mesh.size() / ranks; }
  int replicas() const { return mesh.size("data"); }
  /// Devices that a replica's stages are spread over; each has one or several.
  int pipeline_devices() const { return mesh.size("pipeline"); }
  /// Ranks that share every layer.
  int tensor_ranks() const { return mesh.size("tensor"); }
  /// 1 where one process has several replicas, too.
  int ranks_per_replica() const { return std::max(ranks / replicas(), 1); }
  /// Processes that a replica's stages are spread over.
  int pipeline_ranks() const { return ranks_per_replica() / tensor_ranks(); }
  int replica_of(int rank) const { return rank / ranks_per_replica(); }
  /// Which of the pipeline's ranks.
  int pipeline_rank_of(int rank) const { return rank % ranks_per_replica() / tensor_ranks(); }

  /// All ranks of the replica that this rank belongs to, ascending.
  std::vector<int> ranks_of_replica(int rank) const;
  /// The ranks that `rank` has a dimension's collectives with, itself among them, ascending: over
  /// data those that hold the same parts of the same stages, over pipeline those that share a
  /// replica and hold the same parts of other stages, over tensor those that share its layers.
  std::vector<int> group(int rank, std::string_view dimension) const;
};

/// Returns the mesh of a row whose --mesh is auto, of a strategy that spreads over these dimensions
/// then; empty where it cannot have so many devices.
std::optional<ranks::Mesh> usual_mesh(const std::vector<std::string>& dimensions, int devices);

/// Returns how many processes such a mesh has where --ranks does not decide it.
int usual_ranks(const ranks::Mesh& mesh);

/// What is sharded over the row's replicas: none, optimizer, gradients or parameters.
schedules::Sharded sharded_state(const Config& config);

/// Returns how many replicas keep the same part of the row's state.
int copies_of(const Config& config);

/// Returns the backend of the row's collectives: gloo or nccl.
runtime::Choice<"gloo", "nccl"> backend_of(const Config& config);

/// Returns true if the row's loss is scaled, so that its updates need the norm of the gradients.
bool scales_loss(const Config& config);

/// Returns what the row's plan follows from. Without `parts` the plan has the row's stages and
/// micro-batches, and one group of layers a stage. Throws as placement_of().
strategies::PlanRequest plan_request(const Config& config, strategies::ModelParts parts = {});

/// Returns what the row's strategy decides of its plan.
strategies::PlanOutline outline_of(const Config& config);

/// Returns the plan of each of the row's steps, for the first replica.
strategies::StepPlan plan_of(const Config& config, strategies::ModelParts parts = {});

/// The stages of a replica: as many a device as the schedule has, or the user asks for.
int stages_of(const Config& config);

/// Whether the strategy can train the model, and the model has a layer for every stage. Throws as
/// placement_of().
bool can_train(const Config& config, const Catalogue& catalogue);

/// Throws std::invalid_argument, one line with the option, where devices, mesh and ranks do not fit
/// one another or the strategy.
Placement placement_of(const Config& config);

/// Returns the parts of the batch that the row computes, those of all replicas in order.
/// Throws std::invalid_argument where there are fewer samples than parts.
std::vector<schedules::Slice> partition_of(const Config& config);
/// Returns the parts that count in the loss. A replica may have others, to exchange as often as
/// those with more samples.
std::vector<schedules::Slice> slices_of(const Config& config);
/// Their samples.
std::vector<std::int64_t> micro_batch_sizes(const Config& config);

}  // namespace stratagem::bench
