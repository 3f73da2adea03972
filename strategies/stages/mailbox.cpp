#include "strategies/stages/mailbox.h"

#include <ATen/ATen.h>

#include <utility>

namespace stratagem::stages {
namespace {

/// The tensor's bytes as the backends want them, without gaps in the order of the dimensions: of
/// a channels_last tensor that is its [n, h, w, c] view.
at::Tensor on_wire(const at::Tensor& tensor, at::MemoryFormat format) {
  if (tensor.dim() != 4 || format != at::MemoryFormat::ChannelsLast) {
    return tensor.detach().contiguous();
  }
  return tensor.detach().contiguous(format).permute({0, 2, 3, 1}).contiguous();
}

}  // namespace

Mailbox::Mailbox(Directory directory, at::TensorOptions options, at::MemoryFormat format)
    : directory_(std::move(directory)), options_(options), format_(format) {}

void Mailbox::send(const schedules::Action& action, const at::Tensor& tensor) {
  wait_for_send(action);  // that of the step before
  const Route route = directory_.route(action);
  sent_[action] = route.group->send(on_wire(tensor, format_), route.peer, route.tag);
}

at::Tensor Mailbox::receive(const schedules::Action& action) {
  if (!posted_.contains(action)) post(action);
  if (const auto next = directory_.next(action)) post(*next);
  const Posted own = posted_.extract(action).mapped();
  own.transfer->wait();
  return own.tensor;
}

void Mailbox::wait_for_send(const schedules::Action& sent) {
  const auto entry = sent_.extract(sent);
  if (!entry.empty()) entry.mapped()->wait();
}

void Mailbox::drain() {
  for (const auto& [action, transfer] : std::exchange(sent_, {})) transfer->wait();
}

void Mailbox::post(const schedules::Action& receive) {
  const models::Shape shape = directory_.shape(receive);
  const bool image = shape.size() == 4;
  at::Tensor tensor =
      at::empty(shape, options_.memory_format(image ? format_ : at::MemoryFormat::Contiguous));
  const Route route = directory_.route(receive);
  const at::Tensor wire = on_wire(tensor, format_);  // a view: the tensor has no gaps
  posted_[receive] = {tensor, route.group->receive(wire, route.peer, route.tag)};
}

}  // namespace stratagem::stages
