#include "strategies/pipeline/action.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace stratagem::pipeline {
namespace {

struct Description {
  ActionKind kind;
  std::string_view symbol;
  std::string_view name;
  bool whole_stage = false;  // of no micro-batch
};

constexpr std::array descriptions{
    Description{ActionKind::forward, "F", "forward"},
    Description{ActionKind::backward, "B", "backward"},
    Description{ActionKind::backward_input, "I", "backward_input"},
    Description{ActionKind::backward_weight, "W", "backward_weight"},
    Description{ActionKind::copy_input, "L", "copy_input"},
    Description{ActionKind::copy_activation, "CF", "copy_activation"},
    Description{ActionKind::copy_gradient, "CB", "copy_gradient"},
    Description{ActionKind::send_activation, "SF", "send_activation"},
    Description{ActionKind::receive_activation, "RF", "receive_activation"},
    Description{ActionKind::send_gradient, "SB", "send_gradient"},
    Description{ActionKind::receive_gradient, "RB", "receive_gradient"},
    Description{ActionKind::optimizer, "O", "optimizer", true},
    Description{ActionKind::broadcast, "S", "broadcast", true},
    Description{ActionKind::gradient_wait, "R", "gradient_wait", true},
    Description{ActionKind::reduce_gradients, "G", "reduce_gradients", true},
    Description{ActionKind::all_reduce, "A", "all_reduce"},
    Description{ActionKind::tensor_transfer, "T", "tensor_transfer"},
    Description{ActionKind::tensor_wait, "TW", "tensor_wait"}};

const Description& describe(ActionKind kind) {
  for (const Description& description : descriptions) {
    if (description.kind == kind) return description;
  }
  throw std::logic_error(fmt::format("action kind {} has no name", static_cast<int>(kind)));
}

}  // namespace

std::string to_string(const Action& action) {
  const Description& description = describe(action.kind);
  if (description.whole_stage) return fmt::format("{}{}", action.stage, description.symbol);
  return fmt::format("{}{}{}", action.stage, description.symbol, action.micro_batch);
}

std::string_view name(ActionKind kind) { return describe(kind).name; }

bool is_copy(ActionKind kind) {
  return kind == ActionKind::copy_input || kind == ActionKind::copy_activation ||
         kind == ActionKind::copy_gradient;
}

bool is_backward(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::backward_input;
}

bool is_collective(ActionKind kind) {
  return kind == ActionKind::broadcast || kind == ActionKind::gradient_wait ||
         kind == ActionKind::all_reduce || kind == ActionKind::reduce_gradients ||
         kind == ActionKind::tensor_transfer;
}

bool is_receive(ActionKind kind) {
  return kind == ActionKind::receive_activation || kind == ActionKind::receive_gradient;
}

bool is_send(ActionKind kind) {
  return kind == ActionKind::send_activation || kind == ActionKind::send_gradient;
}

bool moves_data(ActionKind kind) {
  return is_copy(kind) || is_collective(kind) || is_receive(kind) || is_send(kind) ||
         kind == ActionKind::tensor_wait;
}

Action sender_of(const Action& receive) {
  if (receive.kind == ActionKind::receive_activation) {
    return {ActionKind::send_activation, receive.stage - 1, receive.micro_batch};
  }
  if (receive.kind == ActionKind::receive_gradient) {
    return {ActionKind::send_gradient, receive.stage + 1, receive.micro_batch};
  }
  throw std::logic_error(to_string(receive) + " receives nothing");
}

}  // namespace stratagem::pipeline
