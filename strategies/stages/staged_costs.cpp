// The costs of a step of a StagedStrategy by formula.
#include <ATen/OpMathType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/basic_layers.h"
#include "strategies/distributed/process_group.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

void StagedStrategy::note_shapes(const std::vector<models::LayerList>& parts) {
  models::Shape shape = workload_.input_shape(1);
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const models::PassFlops flops = models::flops(parts[stage], shape, stage > 0);
    flops_of_a_sample_ += flops.total();
    repeated_flops_.push_back(flops.repeated(/*output_is_read=*/is_last(static_cast<int>(stage))));
    remade_flops_of_a_sample_ += flops.remade;
    shape = models::output_shape(parts[stage], shape);
    models::Shape own = context_ ? context_->boundary(shape) : shape;
    output_shapes_.push_back(layout_ ? layout_->boundary(std::move(own)) : own);
  }
}

/// Every activation's first dimension is the samples.
models::Shape StagedStrategy::output_shape(int stage, std::int64_t samples) const {
  models::Shape shape = output_shapes_.at(static_cast<std::size_t>(stage));
  shape.front() = samples;
  return shape;
}

strategies::Costs StagedStrategy::costs(std::int64_t samples) const {
  const RankPlan plan = made_plan(samples);
  strategies::Costs costs;
  costs.ideal_bubble = plan.plan.ideal_bubble;
  const schedules::Schedule& stages = plan.plan.of_stages;
  costs.stages = stages.stages();
  costs.flops = flops_of_a_sample_ * static_cast<double>(samples);
  costs.recomputed_flops = remade_inputs_ != models::RemadeInputs::never
                               ? remade_flops_of_a_sample_ * static_cast<double>(samples)
                               : recomputed_flops(plan) * groups_.replicas;
  const auto live = schedules::peak_live_micro_batches(stages);
  costs.live_micro_batches = *std::max_element(
      live.begin() + first_device_,
      live.begin() + first_device_ + static_cast<std::ptrdiff_t>(devices_.size()));
  costs.memory.resize(devices_.size());
  for (const int index : stages_->list()) {
    costs.memory[stages_->device_of(index)] +=
        stages_->state_bytes(index, plan.plan.schedule.micro_batches);
  }
  add_group_costs(costs, plan.plan.schedule);
  if (layout_) add_collectives(costs, plan);
  if (context_) {
    add_attention(costs, plan);
    costs.attention_imbalance = context_->imbalance();
  }
  add_transfers(costs, plan);
  if ((updates_->clips() || updates_->scales()) && groups_.norm != nullptr) {
    costs.collectives["all_reduce"] += {.calls = 1, .payload_bytes = sizeof(double)};
  }
  costs.calls = calls_of(plan);
  return costs;
}

/// Returns those of a replica's stages on all its ranks.
double StagedStrategy::recomputed_flops(const RankPlan& plan) const {
  double flops = 0;
  for (const auto& [kind, stage, micro_batch] : plan.recomputed) {
    const auto samples = plan.slices.at(static_cast<std::size_t>(micro_batch)).count;
    flops += repeated_flops_.at(static_cast<std::size_t>(stage)) * static_cast<double>(samples);
  }
  return flops;
}

const distributed::ProcessGroup* StagedStrategy::group_of(schedules::RankGroup group,
                                                          std::size_t device) const {
  const auto of_device = [&](const std::vector<distributed::ProcessGroup*>& groups) {
    return groups.empty() ? nullptr : groups[device];
  };
  switch (group) {
    case schedules::RankGroup::replicas:
      return of_device(groups_.data);
    case schedules::RankGroup::shards:
      return of_device(groups_.shards.empty() ? groups_.data : groups_.shards);
    case schedules::RankGroup::copies:
      return of_device(groups_.copies);
    case schedules::RankGroup::tensor:
      return groups_.tensor;
    case schedules::RankGroup::norm:
      return groups_.norm;
  }
  return nullptr;
}

strategies::CollectiveCount StagedStrategy::broadcast_cost(std::size_t device) const {
  strategies::CollectiveCount cost;
  for (const std::vector<at::Tensor>& tensors : buffers_.at(device)) {
    cost.calls += 1;
    for (const at::Tensor& each : tensors) {
      cost.payload_bytes += static_cast<std::int64_t>(each.nbytes());
    }
  }
  return cost;
}

/// Returns the payload of an action's call; nothing for an action that starts no call.
strategies::CollectiveCount StagedStrategy::payload_of(const Action& action,
                                                       const schedules::Schedule& schedule) const {
  const FlatGroup* group = stages_->group(action.stage);
  switch (action.kind) {
    case ActionKind::unshard:
      return group->gather_cost();
    case ActionKind::reduce_scatter:
      return group->scatter_cost(schedule.micro_batches);
    case ActionKind::all_reduce_start:
      return group->all_reduce_cost();
    case ActionKind::norm_sum:
      return {.calls = 1, .payload_bytes = sizeof(double)};
    default:
      return schedules::is_of_replicas(action.kind)
                 ? broadcast_cost(stages_->device_of(action.stage))
                 : strategies::CollectiveCount();
  }
}

void StagedStrategy::add_group_costs(strategies::Costs& costs,
                                     const schedules::Schedule& schedule) const {
  static const std::map<ActionKind, const char*> collectives = {
      {ActionKind::unshard, "all_gather"},
      {ActionKind::reduce_scatter, "reduce_scatter"},
      {ActionKind::all_reduce_start, "all_reduce"}};
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) {
      const auto known = collectives.find(action.kind);
      const bool of_buffers = schedules::is_of_replicas(action.kind);
      if ((known == collectives.end() && !of_buffers) || !stages_->has(action.stage)) continue;
      const strategies::CollectiveCount cost = payload_of(action, schedule);
      if (cost.calls > 0) costs.collectives[of_buffers ? "broadcast" : known->second] += cost;
    }
  }
}

/// Omits the number of a micro-batch: a replica with fewer samples may exchange, once a step, an
/// earlier micro-batch's result.
strategies::CallLists StagedStrategy::calls_of(const RankPlan& plan) const {
  const schedules::Schedule& schedule = plan.plan.schedule;
  const auto in_words = [this, &schedule](const Action& action) {
    const auto [calls, bytes, _] = payload_of(action, schedule);
    std::string words(schedules::name(action.kind));
    // Each rank of a replica sums norms at its own first stage.
    const bool of_a_stage = !schedules::is_replicas_own(action.kind);
    if (of_a_stage) words += fmt::format(" of stage {}", action.stage);
    if (calls > 0) words += fmt::format(", {} bytes", bytes);
    return calls > 1 ? words + fmt::format(" in {} calls", calls) : words;
  };
  strategies::CallLists lists;
  const auto add = [&](const distributed::ProcessGroup* group, const Action& action) {
    if (group == nullptr) return;
    strategies::GroupCalls& list = lists[group->title()];
    list.ranks = group->ranks();
    list.calls.push_back(in_words(action));
  };
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    const int index = first_device_ + static_cast<int>(device);
    for (const auto& [kind, action] : schedules::collectives_of(schedule, index)) {
      add(group_of(kind, device), action);
      if (schedules::is_pass(action.kind)) add(groups_.context, action);
    }
  }
  return lists;
}

void StagedStrategy::add_transfers(strategies::Costs& costs, const RankPlan& plan) const {
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    for (const Action& action :
         plan.plan.schedule.actions.at(static_cast<std::size_t>(first_device_) + device)) {
      const bool receives = schedules::is_receive(action.kind);
      if (!receives && !schedules::is_send(action.kind)) continue;
      const schedules::Slice& slice = plan.slices.at(static_cast<std::size_t>(action.micro_batch));
      strategies::CollectiveCount& cost = costs.collectives[receives ? "receive" : "send"];
      cost.calls += 1;
      cost.payload_bytes += c10::multiply_integers(output_shape(producer_of(action), slice.count)) *
                            static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
    }
  }
}

/// Returns the layers' passes of this rank in a step: all forward passes, each with its backward
/// pass, then those that are repeated.
std::vector<StagedStrategy::Pass> StagedStrategy::passes_of(const RankPlan& plan) const {
  std::vector<Pass> passes;
  const auto samples_of = [&plan](int micro_batch) {
    return plan.slices.at(static_cast<std::size_t>(micro_batch)).count;
  };
  for (const int index : stages_->list()) {
    for (int micro_batch = 0; micro_batch < plan.plan.schedule.micro_batches; ++micro_batch) {
      passes.push_back({.stage = index, .samples = samples_of(micro_batch)});
    }
  }
  for (const auto& [kind, index, micro_batch] : plan.recomputed) {
    if (!stages_->has(index)) continue;
    passes.push_back({.stage = index, .samples = samples_of(micro_batch), .is_recomputed = true});
  }
  return passes;
}

void StagedStrategy::add_collectives(strategies::Costs& costs, const RankPlan& plan) const {
  const auto bytes_of = [](at::ScalarType dtype) {
    return static_cast<std::int64_t>(c10::elementSize(dtype));
  };
  for (const auto& [index, samples, is_recomputed] : passes_of(plan)) {
    // The data needs no gradient, unless the model itself computes it.
    const models::Layer& front = *stages_->at(index).layers().front();
    const bool takes_data =
        index == 0 && dynamic_cast<const models::InputGradientLayer*>(&front) == nullptr;
    add(costs.collectives,
        layout_->communication(index,
                               {.positions = samples * std::max<std::int64_t>(own_positions(), 1),
                                .element_bytes = bytes_of(workload_.options().dtype),
                                .loss_bytes = bytes_of(workload_.master_dtype()),
                                .input_needs_gradient = !takes_data,
                                .is_recomputed = is_recomputed}));
  }
  for (const auto& actions : plan.plan.schedule.actions) {
    for (const Action& action : actions) {
      if (!schedules::is_tensor_collective(action.kind) || !stages_->has(action.stage)) continue;
      const models::LayerList& layers = stages_->at(action.stage).layers();
      add(costs.collectives, layout_->reduction(layers, bytes_of(reduced_format_)));
    }
  }
}

void StagedStrategy::add_attention(strategies::Costs& costs, const RankPlan& plan) const {
  const at::ScalarType format = workload_.options().dtype;
  for (const auto& [index, samples, is_recomputed] : passes_of(plan)) {
    const context_parallel::AttentionWork work{
        .samples = samples,
        .element_bytes = static_cast<std::int64_t>(c10::elementSize(format)),
        .sum_bytes = static_cast<std::int64_t>(c10::elementSize(at::toOpMathType(format))),
        .has_backward = !is_recomputed,
        .remade = remade_inputs_ != models::RemadeInputs::never};
    add(costs.collectives, context_->communication(index, work));
  }
}

/// Returns the number of a sample's positions on this rank, before tensor parallelism cuts them.
std::int64_t StagedStrategy::own_positions() const {
  return context_ ? context_->own_positions() : workload_.sequence_length();
}

}  // namespace stratagem::stages
