#include "strategies/pipeline/action.h"

#include <fmt/format.h>

namespace stratagem::pipeline {
namespace {

std::string_view symbol(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "F";
    case ActionKind::backward:
      return "B";
    case ActionKind::copy_input:
      return "L";
    case ActionKind::copy_activation:
      return "CF";
    case ActionKind::copy_gradient:
      return "CB";
    case ActionKind::optimizer:
      return "O";
    case ActionKind::broadcast:
      return "S";
    case ActionKind::gradient_wait:
      return "R";
    case ActionKind::all_reduce:
      return "A";
  }
  return "?";
}

}  // namespace

std::string to_string(const Action& action) {
  const bool whole_stage = action.kind == ActionKind::optimizer ||
                           action.kind == ActionKind::broadcast ||
                           action.kind == ActionKind::gradient_wait;
  if (whole_stage) return fmt::format("{}{}", action.stage, symbol(action.kind));
  return fmt::format("{}{}{}", action.stage, symbol(action.kind), action.micro_batch);
}

std::string_view name(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::copy_input:
      return "copy_input";
    case ActionKind::copy_activation:
      return "copy_activation";
    case ActionKind::copy_gradient:
      return "copy_gradient";
    case ActionKind::optimizer:
      return "optimizer";
    case ActionKind::broadcast:
      return "broadcast";
    case ActionKind::gradient_wait:
      return "gradient_wait";
    case ActionKind::all_reduce:
      return "all_reduce";
  }
  return "unknown";
}

bool is_copy(ActionKind kind) {
  return kind == ActionKind::copy_input || kind == ActionKind::copy_activation ||
         kind == ActionKind::copy_gradient;
}

bool is_collective(ActionKind kind) {
  return kind == ActionKind::broadcast || kind == ActionKind::gradient_wait ||
         kind == ActionKind::all_reduce;
}

}  // namespace stratagem::pipeline
