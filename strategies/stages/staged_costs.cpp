// What a step of a StagedStrategy costs by formula.
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
    flops_of_a_sample_ += models::flops(parts[stage], shape, stage > 0).total();
    shape = models::output_shape(parts[stage], shape);
    output_shapes_.push_back(layout_ ? layout_->boundary(shape) : shape);
  }
}

/// Samples are the first dimension of every activation.
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
  const auto live = schedules::peak_live_micro_batches(stages);
  costs.live_micro_batches = *std::max_element(
      live.begin() + first_device_,
      live.begin() + first_device_ + static_cast<std::ptrdiff_t>(devices_.size()));
  costs.memory.resize(devices_.size());
  for (const int index : own_stages_) {
    costs.memory[static_cast<std::size_t>(own_device_of(index))] +=
        stages_[static_cast<std::size_t>(index)]->state_bytes();
  }
  if (layout_) add_collectives(costs, plan);
  add_transfers(costs, plan);
  if ((clips() || scales()) && groups_.norm != nullptr) {
    costs.collectives["all_reduce"] += {.calls = 1, .payload_bytes = sizeof(double)};
  }
  costs.calls = calls_of(plan);
  return costs;
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

strategies::CollectiveCount StagedStrategy::payload_of(
    const Action& action, const schedules::Schedule& /*schedule*/) const {
  if (!schedules::is_replicas_own(action.kind)) return {};
  return {.calls = 1, .payload_bytes = sizeof(double)};
}

/// Without the number of a micro-batch: a replica with fewer samples may exchange, once a step,
/// what was made in an earlier one.
strategies::CallLists StagedStrategy::calls_of(const RankPlan& plan) const {
  const schedules::Schedule& schedule = plan.plan.schedule;
  const auto in_words = [this, &schedule](const Action& action) {
    const auto [calls, bytes, _] = payload_of(action, schedule);
    std::string words(schedules::name(action.kind));
    // Each rank of a replica sums norms where its own first stage is.
    const bool of_a_stage = !schedules::is_replicas_own(action.kind);
    if (of_a_stage) words += fmt::format(" of stage {}", action.stage);
    if (calls > 0) words += fmt::format(", {} bytes", bytes);
    return calls > 1 ? words + fmt::format(" in {} calls", calls) : words;
  };
  strategies::CallLists lists;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    const int index = first_device_ + static_cast<int>(device);
    for (const auto& [kind, action] : schedules::collectives_of(schedule, index)) {
      const distributed::ProcessGroup* group = group_of(kind, device);
      if (group == nullptr) continue;
      strategies::GroupCalls& list = lists[group->title()];
      list.ranks = group->ranks();
      list.calls.push_back(in_words(action));
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
      const Action sent = receives ? schedules::sender_of(action) : action;
      const bool forward = sent.kind == ActionKind::send_activation;
      const int producer = forward ? sent.stage : sent.stage - 1;  // of the tensor at the boundary
      const schedules::Slice& slice = plan.slices.at(static_cast<std::size_t>(action.micro_batch));
      strategies::CollectiveCount& cost = costs.collectives[receives ? "receive" : "send"];
      cost.calls += 1;
      cost.payload_bytes += c10::multiply_integers(output_shape(producer, slice.count)) *
                            static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
    }
  }
}

void StagedStrategy::add_collectives(strategies::Costs& costs, const RankPlan& plan) const {
  const auto bytes_of = [](at::ScalarType dtype) {
    return static_cast<std::int64_t>(c10::elementSize(dtype));
  };
  for (const int index : own_stages_) {
    // Nobody asks for the gradient of the data, unless the model itself does.
    const models::Layer& front = *stages_[static_cast<std::size_t>(index)]->layers().front();
    const bool takes_data =
        index == 0 && dynamic_cast<const models::InputGradientLayer*>(&front) == nullptr;
    for (const schedules::Slice& slice : plan.slices) {
      const std::int64_t positions =
          slice.count * std::max<std::int64_t>(workload_.sequence_length(), 1);
      const tensor_parallel::LayerInput work{.positions = positions,
                                             .element_bytes = bytes_of(workload_.options().dtype),
                                             .loss_bytes = bytes_of(workload_.master_dtype()),
                                             .input_needs_gradient = !takes_data};
      add(costs.collectives, layout_->communication(index, work));
    }
  }
  for (const auto& actions : plan.plan.schedule.actions) {
    for (const Action& action : actions) {
      const auto& own = stages_.at(static_cast<std::size_t>(action.stage));
      if (!schedules::is_tensor_collective(action.kind) || own == nullptr) continue;
      add(costs.collectives, layout_->reduction(own->layers(), bytes_of(reduced_format_)));
    }
  }
}

}  // namespace stratagem::stages
