// How an autograd node remembers who takes its weight gradients (see weight_gradients.h).
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "models/weight_gradients.h"

namespace stratagem::models {

// In a node's forward pass: those in force take what its backward pass leaves; nobody, if none are.
inline void leave_to_those_in_force(torch::autograd::AutogradContext& context) {
  if (!weight_gradients_in_force()) return;
  context.saved_data["left_to"] = c10::IValue::make_capsule(weight_gradients_in_force());
}

// In its backward pass; null where it computes them itself.
inline WeightGradientsPointer collector_of(const torch::autograd::AutogradContext& context) {
  const auto found = context.saved_data.find("left_to");
  if (found == context.saved_data.end()) return {};
  return c10::static_intrusive_pointer_cast<WeightGradients>(found->second.toCapsule());
}

}  // namespace stratagem::models
