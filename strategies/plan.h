// StepPlan: the work of a training step on a batch of some size. A pure function makes it from a
// row's options, the arrangement of its devices and a few facts of its model, without LibTorch. The
// strategy runs the plan, predictions simulate it, and process groups follow from it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "strategies/options.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/data_parallel_schedule.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::strategies {

/// The arrangement of a row's devices.
struct Arrangement {
  int replicas = 1;
  int devices = 1;        // the devices of a replica's stages
  int ranks = 1;          // ranks of equally many consecutive devices
  int tensor_ranks = 1;   // the ranks that share each layer
  int context_ranks = 1;  // the ranks that share each sample's positions

  /// Returns the number of ranks with the same layers, whose gradients are summed.
  int copies() const { return replicas * context_ranks; }
};

/// Facts of the model as cut by the row.
struct ModelParts {
  std::vector<int> groups_of_stage = {};  // [stage]: number of layer groups; empty: one each
  std::set<int> empty_groups = {};        // groups without parameters
  std::set<int> kept_groups = {};         // groups that full recomputation leaves out
  bool has_buffers = false;
  bool has_common_heads = false;  // several tensor ranks have copies of some
  std::vector<int> owners = {0};  // [segment] of replicas in one process: its updating device
};

/// PlanRequest has all inputs of a plan.
struct PlanRequest {
  StrategyOptions options = {};  // `shard` is the state that the strategy shards
  Arrangement arrangement = {};
  ModelParts parts = {};
  bool mixed_precision = false;
  bool needs_norm = false;  // gradients are clipped, or the loss is scaled
  std::int64_t samples = 1;
  int replica = 0;  // the plan's replica: others may have one micro-batch more or less
};

/// The option that decides the number of micro-batches in a replica's part of the batch.
enum class MicroBatchOption { none, split_size, accumulation_steps };

/// Plans of one row differ only in their micro-batches: the same stages are on the same devices.
struct StepPlan {
  schedules::Schedule schedule = {};             // the schedule of a step, lowered and valid
  schedules::Schedule evaluation = {};           // the forward passes of an evaluation
  schedules::Schedule of_stages = {};            // before layer groups and reductions are added
  std::vector<schedules::Slice> partition = {};  // the batch's slices, of all replicas
  double ideal_bubble = 0;
};

/// A strategy's name decides its outline. The rest of a plan follows from the request.
struct PlanOutline {
  std::string schedule = "naive";  // see strategies/schedules/registry.h
  MicroBatchOption cut_by = MicroBatchOption::none;
  bool has_partial_gradients = false;  // the ranks that share layers must sum some gradients
  bool in_one_process = false;         // replicas by data_parallel_schedule.h, without stages
};

using Outline = std::function<PlanOutline(const PlanRequest&)>;

/// Returns the parts of the batch that are computed in turn, of all replicas.
std::vector<schedules::Slice> partition_of(const PlanRequest& request, const PlanOutline& outline);

/// Returns the number of stages of a replica.
int stages_of(const PlanRequest& request, const PlanOutline& outline);

StepPlan plan_of(const PlanRequest& request, const PlanOutline& outline);

/// Returns the shape for replicas in one process.
schedules::DataParallelShape data_parallel_shape(const PlanRequest& request);

/// Returns whether layers are cut into groups that are together gathered, summed over replicas,
/// kept in two formats, or recomputed.
bool has_layer_groups(const PlanRequest& request, const PlanOutline& outline = {});

/// Returns whether a group's parameters lie in one buffer: unless groups are only recomputed.
bool has_flat_groups(const PlanRequest& request);

/// Returns the number of ranks with the same part of the state: all copies of the layers if nothing
/// is sharded.
int copies_of(const PlanRequest& request);

/// Returns whether several ranks have parts of the norm of a replica's gradients.
bool sums_norms_over_ranks(const PlanRequest& request);

}  // namespace stratagem::strategies
