#include "strategies/stages/mailbox.h"

#include <ATen/ATen.h>

#include <utility>

#include "strategies/backends/memory_accounting.h"

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

void Mailbox::send(const schedules::Action& action, const at::Tensor& tensor, const Route& route) {
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  wait_for_send(action);  // that of the step before
  sent_[action] = route.group->send(on_wire(tensor, format_), route.peer);
}

at::Tensor Mailbox::take(const schedules::Action& receive) {
  const Posted posted = posted_.extract(receive).mapped();
  posted.transfer->wait();
  return posted.tensor;
}

void Mailbox::wait_for_send(const schedules::Action& sent) {
  const auto entry = sent_.extract(sent);
  if (!entry.empty()) entry.mapped()->wait();
}

void Mailbox::drain() {
  for (const auto& [action, transfer] : std::exchange(sent_, {})) transfer->wait();
}

void Mailbox::expect(const Incoming& incoming) {
  if (posted_.contains(incoming.action)) return;
  const backends::MemoryCategoryGuard communication(backends::MemoryCategory::communication);
  const bool image = incoming.shape.size() == 4;
  at::Tensor tensor = at::empty(
      incoming.shape, options_.memory_format(image ? format_ : at::MemoryFormat::Contiguous));
  const at::Tensor wire = on_wire(tensor, format_);  // a view: the tensor has no gaps
  const Route& route = incoming.route;
  posted_[incoming.action] = {tensor, route.group->receive(wire, route.peer)};
}

}  // namespace stratagem::stages
