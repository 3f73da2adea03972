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
  }
  return "?";
}

}  // namespace

std::string to_string(const Action& action) {
  if (action.kind == ActionKind::optimizer) return fmt::format("{}O", action.stage);
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
  }
  return "unknown";
}

bool is_copy(ActionKind kind) {
  return kind == ActionKind::copy_input || kind == ActionKind::copy_activation ||
         kind == ActionKind::copy_gradient;
}

}  // namespace stratagem::pipeline
