// What a step of a StagedStrategy costs by formula.
#include <c10/core/ScalarType.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

void StagedStrategy::note_shapes(const std::vector<models::LayerList>& parts) {
  output_shapes_.resize(parts.size());
  for (const schedules::Slice& slice : partition_) {
    models::Shape shape = workload_.input_shape(slice.count);
    for (std::size_t stage = 0; stage < parts.size(); ++stage) {
      flops_ += models::flops(parts[stage], shape, stage > 0).total();
      shape = models::output_shape(parts[stage], shape);
      if (slice.replica != groups_.replica) continue;
      output_shapes_[stage].push_back(layout_ ? layout_->boundary(shape) : shape);
    }
  }
}

strategies::Costs StagedStrategy::costs() const {
  strategies::Costs costs;
  costs.ideal_bubble = ideal_bubble_;
  costs.stages = schedule_.stages();
  costs.flops = flops_;
  const auto live = schedules::peak_live_micro_batches(schedule_);
  costs.live_micro_batches = *std::max_element(
      live.begin() + first_device_,
      live.begin() + first_device_ + static_cast<std::ptrdiff_t>(devices_.size()));
  if (layout_) add_collectives(costs);
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    for (const Action& action :
         schedule_.actions.at(static_cast<std::size_t>(first_device_) + device)) {
      const bool receives = schedules::is_receive(action.kind);
      if (!receives && !schedules::is_send(action.kind)) continue;
      const Action sent = receives ? schedules::sender_of(action) : action;
      const bool forward = sent.kind == ActionKind::send_activation;
      const int producer = forward ? sent.stage : sent.stage - 1;  // of the tensor at the boundary
      strategies::CollectiveCount& cost = costs.collectives[receives ? "receive" : "send"];
      cost.calls += 1;
      cost.payload_bytes +=
          c10::multiply_integers(output_shapes_.at(static_cast<std::size_t>(producer))
                                     .at(static_cast<std::size_t>(action.micro_batch))) *
          static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
    }
  }
  return costs;
}

void StagedStrategy::add_collectives(strategies::Costs& costs) const {
  const auto element = static_cast<std::int64_t>(c10::elementSize(workload_.options().dtype));
  for (const int index : own_stages_) {
    for (const schedules::Slice& slice : slices_) {
      const std::int64_t positions =
          slice.count * std::max<std::int64_t>(workload_.sequence_length(), 1);
      add(costs.collectives, layout_->communication(index, {positions, element}, index == 0,
                                                    index + 1 == schedule_.stages()));
    }
    if (layout_->needs_reduction()) {
      add(costs.collectives,
          layout_->reduction(stages_.at(static_cast<std::size_t>(index))->layers()));
    }
  }
}

}  // namespace stratagem::stages
