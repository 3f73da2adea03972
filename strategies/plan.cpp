#include "strategies/plan.h"

#include <algorithm>
#include <utility>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/recomputation.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/sharding.h"

namespace stratagem::strategies {
namespace {

int stages_per_device(const PlanRequest& request, const PlanOutline& outline) {
  return schedules::find_schedule(outline.schedule)
      .stages_for(static_cast<int>(request.options.virtual_stages));
}

schedules::Sharding sharding_of(const PlanRequest& request) {
  const bool replicated = request.arrangement.copies() > 1;
  return {.sharded = request.options.shard,
          .reshard_after_forward = request.options.reshard_after_forward,
          .prefetch = static_cast<int>(request.options.prefetch),
          .copies = copies_of(request) > 1,
          .empty = request.parts.empty_groups,
          .with_buffers = replicated && request.parts.has_buffers};
}

/// Cuts stages into groups of layers and adds their exchanges with replicas.
void add_groups(const PlanRequest& request, StepPlan& plan) {
  std::vector<int> groups = request.parts.groups_of_stage;
  groups.resize(plan.schedule.device_of_stage.size(), 1);
  const schedules::Schedule cut = schedules::cut_into_groups(plan.schedule, groups);
  plan.schedule = schedules::add_sharding(cut, sharding_of(request));
  plan.evaluation = schedules::add_sharding(schedules::forward_only(cut), sharding_of(request));
}

/// Returns the schedule's stages whose activations are kept. Replicas in one process have stages of
/// their own.
std::set<int> kept_stages(const PlanRequest& request, const PlanOutline& outline) {
  if (!outline.in_one_process) return request.parts.kept_groups;
  const schedules::DataParallelShape shape = data_parallel_shape(request);
  std::set<int> stages;
  for (int replica = 0; replica < shape.staged_replicas(); ++replica) {
    for (const int segment : request.parts.kept_groups) {
      stages.insert(shape.stage_of(replica, segment));
    }
  }
  return stages;
}

}  // namespace

bool has_layer_groups(const PlanRequest& request, const PlanOutline& outline) {
  if (outline.in_one_process) return false;
  return has_flat_groups(request) || request.options.recompute == "full";
}

bool has_flat_groups(const PlanRequest& request) {
  return request.options.shard != "none" || request.mixed_precision ||
         request.arrangement.copies() > 1;
}

int copies_of(const PlanRequest& request) {
  return request.options.shard == "none" ? request.arrangement.copies()
                                         : static_cast<int>(request.options.replicas_of_shards);
}

bool sums_norms_over_ranks(const PlanRequest& request) {
  const Arrangement& of = request.arrangement;
  return request.options.shard != "none" || of.ranks * of.tensor_ranks > 1;
}

std::vector<schedules::Slice> partition_of(const PlanRequest& request, const PlanOutline& outline) {
  const int replicas = request.arrangement.replicas;
  const StrategyOptions& options = request.options;
  if (outline.in_one_process) return schedules::chunk_batch(request.samples, replicas);
  const std::int64_t parts =
      outline.cut_by == MicroBatchOption::accumulation_steps ? options.accumulation_steps : 1;
  const auto partition =
      outline.cut_by == MicroBatchOption::split_size
          ? schedules::split_batch_per_replica(request.samples, replicas, options.split_size)
          : schedules::split_batch_per_replica_by_count(request.samples, replicas, parts);
  // Replicas that exchange something in each micro-batch need equal numbers of them.
  return options.shard == "none" ? partition : schedules::with_equal_counts(partition);
}

int stages_of(const PlanRequest& request, const PlanOutline& outline) {
  if (outline.in_one_process) return 1;
  return request.arrangement.devices * stages_per_device(request, outline);
}

StepPlan plan_of(const PlanRequest& request, const PlanOutline& outline) {
  StepPlan plan{.partition = partition_of(request, outline)};
  if (outline.in_one_process) {
    const schedules::DataParallelShape shape = data_parallel_shape(request);
    plan.schedule = schedules::data_parallel_schedule(shape);
    plan.evaluation = schedules::data_parallel_evaluation(shape);
    plan.of_stages = plan.schedule;
  } else {
    const schedules::ScheduleSize size{
        .devices = request.arrangement.devices,
        .micro_batches = static_cast<int>(
            std::ranges::count(plan.partition, request.replica, &schedules::Slice::replica)),
        .stages_per_device = stages_per_device(request, outline),
        .pass_times = schedules::pass_times_in(request.options.pass_times),
        .live_limit = static_cast<int>(request.options.live_micro_batches)};
    plan.ideal_bubble = schedules::find_schedule(outline.schedule).ideal_bubble(size);
    plan.schedule = schedules::make_schedule(outline.schedule, size, request.arrangement.ranks);
    plan.of_stages = plan.schedule;
    plan.evaluation = schedules::forward_only(plan.schedule);
    if (has_layer_groups(request, outline)) add_groups(request, plan);
  }
  if (request.options.recompute == "full") {
    plan.schedule = schedules::add_recomputation(plan.schedule, kept_stages(request, outline));
  }
  if (outline.has_partial_gradients) {
    plan.schedule = schedules::add_gradient_reduction(plan.schedule);
  }
  if (request.needs_norm) {
    plan.schedule = schedules::add_clipping(plan.schedule, sums_norms_over_ranks(request));
  }
  return plan;
}

schedules::DataParallelShape data_parallel_shape(const PlanRequest& request) {
  const int devices = request.arrangement.replicas;
  const StrategyOptions& options = request.options;
  return {.devices = devices,
          .replicas = static_cast<int>(schedules::chunk_batch(request.samples, devices).size()),
          .output_device = static_cast<int>(options.output_device),
          .scatter_from_first = options.scatter == "first",
          .loss_on_replicas = options.loss_on == "replicas",
          .copies_kept = options.replicate == "kept",
          .reduce_overlapped = options.reduce == "overlapped",
          .with_buffers = request.parts.has_buffers,
          .owners = request.parts.owners};
}

}  // namespace stratagem::strategies
