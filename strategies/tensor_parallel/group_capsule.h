// Keeps the group in an autograd node for its backward pass.
#pragma once

#include <ATen/core/ivalue.h>

#include "strategies/tensor_parallel/tensor_group.h"

namespace stratagem::tensor_parallel {

/// The group outlives the graph, like the layers.
struct GroupCapsule : torch::CustomClassHolder {
  explicit GroupCapsule(TensorGroup& of) : group(of) {}
  TensorGroup& group;
};

inline c10::IValue capsule_of(TensorGroup& group) {
  return c10::IValue::make_capsule(c10::make_intrusive<GroupCapsule>(group));
}

inline TensorGroup& group_in(const c10::IValue& capsule) {
  return c10::static_intrusive_pointer_cast<GroupCapsule>(capsule.toCapsule())->group;
}

}  // namespace stratagem::tensor_parallel
