// StepPlan: what a training step does with a batch of some size. A pure function makes it from a
// row's options, the arrangement of its devices and a few facts of its model, without LibTorch.
// The strategy runs the plan, predictions simulate it, and process groups follow from it.
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

/// How a row's devices are arranged.
struct Arrangement {
  int replicas = 1;
  int devices = 1;       // that a replica's stages are spread over
  int ranks = 1;         // that have these devices, consecutive ones each
  int tensor_ranks = 1;  // that share each layer
};

/// Facts of the model, as the row cuts it.
struct ModelParts {
  std::vector<int> groups_of_stage = {};  // [stage]: groups of layers; empty: one each
  std::set<int> empty_groups = {};        // without parameters
  bool has_buffers = false;
  std::vector<int> owners = {0};  // [segment] of replicas in one process: who updates it
};

/// PlanRequest has all that a plan follows from.
struct PlanRequest {
  StrategyOptions options = {};  // `shard` is what the strategy shards
  Arrangement arrangement = {};
  ModelParts parts = {};
  bool mixed_precision = false;
  bool needs_norm = false;  // gradients are clipped, or the loss is scaled
  std::int64_t samples = 1;
  int replica = 0;  // whose plan it is: replicas may have one micro-batch more or less
};

/// Names the option that says how many micro-batches a replica's part of the batch is cut into.
enum class MicroBatchOption { none, split_size, accumulation_steps };

/// Plans of one row differ in their micro-batches alone: the same stages are on the same devices.
struct StepPlan {
  schedules::Schedule schedule = {};             // as it runs: lowered and valid
  schedules::Schedule evaluation = {};           // its forward passes
  schedules::Schedule of_stages = {};            // before groups of layers and reductions are added
  std::vector<schedules::Slice> partition = {};  // of the batch, of all replicas
  double ideal_bubble = 0;
};

/// A strategy decides its outline by its name. The rest of a plan follows from the request.
struct PlanOutline {
  std::string schedule = "naive";  // see strategies/schedules/registry.h
  MicroBatchOption cut_by = MicroBatchOption::none;
  bool has_partial_gradients = false;  // the ranks that share layers sum some of them
  bool in_one_process = false;         // replicas, by data_parallel_schedule.h; no stages
};

using Outline = std::function<PlanOutline(const PlanRequest&)>;

/// The parts of the batch that are computed one after another, of all replicas.
std::vector<schedules::Slice> partition_of(const PlanRequest& request, const PlanOutline& outline);

/// The stages of a replica.
int stages_of(const PlanRequest& request, const PlanOutline& outline);

StepPlan plan_of(const PlanRequest& request, const PlanOutline& outline);

/// Of replicas in one process.
schedules::DataParallelShape data_parallel_shape(const PlanRequest& request);

/// Returns true if layers are cut into groups, which are gathered, summed over replicas or kept in
/// two formats together.
bool has_layer_groups(const PlanRequest& request, const PlanOutline& outline = {});

/// Returns how many replicas keep the same part of the state: all of them where nothing is sharded.
int copies_of(const PlanRequest& request);

/// Returns true if several ranks have parts of the norm of a replica's gradients.
bool sums_norms_over_ranks(const PlanRequest& request);

}  // namespace stratagem::strategies
