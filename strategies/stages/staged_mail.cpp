// What the stages of a StagedStrategy send to, and receive from, neighbours on other ranks.
#include <algorithm>
#include <map>
#include <optional>

#include "strategies/backends/backend.h"
#include "strategies/stages/staged_strategy.h"

namespace stratagem::stages {

using schedules::Action;
using schedules::ActionKind;

void StagedStrategy::open_mailbox(int stage) {
  std::map<ActionKind, Action> last;
  const auto device = static_cast<std::size_t>(first_device_ + own_device_of(stage));
  for (const Action& action : schedule_.actions.at(device)) {
    if (action.stage != stage || !schedules::is_receive(action.kind)) continue;
    const auto before = last.find(action.kind);
    if (before != last.end()) next_receive_.insert_or_assign(before->second, action);
    last[action.kind] = action;
  }
  const auto shape = [this](const Action& receive) {
    const bool forward = receive.kind == ActionKind::receive_activation;
    const int producer = forward ? receive.stage - 1 : receive.stage;
    return output_shapes_.at(static_cast<std::size_t>(producer))
        .at(static_cast<std::size_t>(receive.micro_batch));
  };
  const auto next = [this](const Action& receive) -> std::optional<Action> {
    const auto found = next_receive_.find(receive);
    if (found == next_receive_.end()) return std::nullopt;
    return found->second;
  };
  const auto& description = devices_[static_cast<std::size_t>(own_device_of(stage))]->description();
  mailboxes_[static_cast<std::size_t>(stage)] = std::make_unique<stages::Mailbox>(
      stages::Mailbox::Directory{[this](const Action& action) { return route_of(action); }, shape,
                                 next},
      at::TensorOptions(workload_.options().dtype).device(backends::torch_device(description)),
      workload_.options().format);
}

stages::Mailbox::Route StagedStrategy::route_of(const Action& action) const {
  const bool forward =
      action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_activation;
  const bool onwards = forward == schedules::is_send(action.kind);  // the peer holds the next stage
  const int other = action.stage + (onwards ? 1 : -1);
  const int device = schedule_.device_of_stage.at(static_cast<std::size_t>(other));
  return {.group = forward ? groups_.activations : groups_.gradients,
          .peer = schedule_.rank_of_device.at(static_cast<std::size_t>(device)),
          .tag = std::min(action.stage, other) * schedule_.micro_batches + action.micro_batch};
}

void StagedStrategy::drain() {
  for (const auto& own : mailboxes_) {
    if (own) own->drain();
  }
}

}  // namespace stratagem::stages
