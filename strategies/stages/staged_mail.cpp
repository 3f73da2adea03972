// What the stages of a StagedStrategy hand to neighbours on their own device, and send to and
// receive from those on other ranks.
#include "strategies/backends/backend.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

/// Neighbours on one device share the tensor: the next one's input is the output of the one before,
/// as a leaf of its own.
void StagedStrategy::hand_over_activation(const Action& forward) {
  const auto [kind, index, micro_batch] = forward;
  if (index == 0 || !on_one_device(index, index - 1)) return;
  stage(index).set_input(micro_batch, stage(index - 1).output(micro_batch).detach());
}

void StagedStrategy::hand_over_gradient(const Action& backward) {
  const auto [kind, index, micro_batch] = backward;
  if (index + 1 == stage_count() || !on_one_device(index, index + 1)) return;
  stage(index).set_output_gradient(micro_batch, stage(index + 1).take_input_gradient(micro_batch));
}

void StagedStrategy::open_mailbox(int stage) {
  const auto& description = devices_[static_cast<std::size_t>(own_device_of(stage))]->description();
  mailboxes_[static_cast<std::size_t>(stage)] = std::make_unique<stages::Mailbox>(
      at::TensorOptions(workload_.options().dtype).device(backends::torch_device(description)),
      workload_.options().format);
}

stages::Mailbox::Route StagedStrategy::route_of(const Action& action, const RankPlan& plan) const {
  const bool forward =
      action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_activation;
  const bool onwards = forward == schedules::is_send(action.kind);  // the peer holds the next stage
  const int other = action.stage + (onwards ? 1 : -1);
  const schedules::Schedule& schedule = plan.plan.schedule;
  const int device = schedule.device_of_stage.at(static_cast<std::size_t>(other));
  const int peer = schedule.rank_of_device.at(static_cast<std::size_t>(device));
  const int own = groups_.activations->rank();
  const bool around = (action.stage < other) != (own < peer);  // an earlier rank has the next stage
  if (around) return {forward ? groups_.activations_around : groups_.gradients_around, peer};
  return {forward ? groups_.activations : groups_.gradients, peer};
}

stages::Mailbox::Incoming StagedStrategy::incoming(const Action& receive,
                                                   const RankPlan& plan) const {
  const bool forward = receive.kind == ActionKind::receive_activation;
  const int producer = forward ? receive.stage - 1 : receive.stage;
  const schedules::Slice& slice = plan.slices.at(static_cast<std::size_t>(receive.micro_batch));
  return {.action = receive,
          .route = route_of(receive, plan),
          .shape = output_shape(producer, slice.count)};
}

at::Tensor StagedStrategy::receive(const Action& action, const RankPlan& plan) {
  mailbox(action.stage).expect(incoming(action, plan));
  if (const auto next = plan.next_receive.find(action); next != plan.next_receive.end()) {
    mailbox(next->second.stage).expect(incoming(next->second, plan));
  }
  at::Tensor received = mailbox(action.stage).take(action);
  if (const auto sent = plan.answered.find(action); sent != plan.answered.end()) {
    for (const Action& each : sent->second) mailbox(each.stage).wait_for_send(each);
  }
  return received;
}

void StagedStrategy::drain() {
  for (const auto& own : mailboxes_) {
    if (own) own->drain();
  }
}

}  // namespace stratagem::stages
