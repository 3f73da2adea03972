#include "strategies/stages/mailbox.h"

#include <ATen/ATen.h>

#include <utility>

#include "strategies/backends/memory_accounting.h"

namespace stratagem::stages {

using schedules::ActionKind;

namespace {

/// Returns the tensor in the backends' form, without gaps in the order of the dimensions: a
/// channels_last tensor's [n, h, w, c] view.
at::Tensor on_wire(const at::Tensor& tensor, at::MemoryFormat format) {
  if (tensor.dim() != 4 || format != at::MemoryFormat::ChannelsLast) {
    return tensor.detach().contiguous();
  }
  return tensor.detach().contiguous(format).permute({0, 2, 3, 1}).contiguous();
}

}  // namespace

int producer_of(const schedules::Action& transfer) {
  const auto sent =
      schedules::is_receive(transfer.kind) ? schedules::sender_of(transfer) : transfer;
  return sent.kind == ActionKind::send_activation ? sent.stage : sent.stage - 1;
}

Mailbox::Route Mailbox::route_of(const schedules::Action& action,
                                 const schedules::Schedule& schedule) const {
  const bool forward =
      action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_activation;
  const bool onwards = forward == schedules::is_send(action.kind);  // the peer holds the next stage
  const int other = action.stage + (onwards ? 1 : -1);
  const int device = schedule.device_of_stage.at(static_cast<std::size_t>(other));
  const int peer = schedule.rank_of_device.at(static_cast<std::size_t>(device));
  const int own = groups_.activations->rank();
  const bool around = (action.stage < other) != (own < peer);  // an earlier rank has the next stage
  if (around) return {forward ? groups_.activations_around : groups_.gradients_around, peer};
  return {forward ? groups_.activations : groups_.gradients, peer};
}

void Mailbox::send(const schedules::Action& action, const at::Tensor& tensor,
                   const RankPlan& plan) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  wait_for_send(action);  // the last step's send
  const Route route = route_of(action, plan.plan.schedule);
  sent_[action] = route.group->send(on_wire(tensor, format_), route.peer);
}

at::Tensor Mailbox::receive(const schedules::Action& action, const RankPlan& plan) {
  expect(action, plan);
  if (const auto next = plan.next_receive.find(action); next != plan.next_receive.end()) {
    expect(next->second, plan);
  }
  at::Tensor received = take(action);
  if (const auto sent = plan.answered.find(action); sent != plan.answered.end()) {
    for (const schedules::Action& each : sent->second) wait_for_send(each);
  }
  return received;
}

/// Posts the receive unless it is posted.
void Mailbox::expect(const schedules::Action& receive, const RankPlan& plan) {
  if (posted_.contains(receive)) return;
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  models::Shape shape = shapes_.at(static_cast<std::size_t>(producer_of(receive)));
  shape.front() = plan.slices.at(static_cast<std::size_t>(receive.micro_batch)).count;
  at::Tensor tensor = at::empty(
      shape, options_.memory_format(shape.size() == 4 ? format_ : at::MemoryFormat::Contiguous));
  const at::Tensor wire = on_wire(tensor, format_);  // a view: the tensor has no gaps
  const Route route = route_of(receive, plan.plan.schedule);
  posted_[receive] = {tensor, route.group->receive(wire, route.peer)};
}

/// Returns the tensor of an expected receive.
at::Tensor Mailbox::take(const schedules::Action& receive) {
  const Posted posted = posted_.extract(receive).mapped();
  posted.transfer->wait();
  return posted.tensor;
}

/// Waits for a previous transfer of `sent`, if any, and forgets it.
void Mailbox::wait_for_send(const schedules::Action& sent) {
  const auto entry = sent_.extract(sent);
  if (!entry.empty()) entry.mapped()->wait();
}

void Mailbox::drain() {
  for (const auto& [action, transfer] : std::exchange(sent_, {})) transfer->wait();
}

}  // namespace stratagem::stages
