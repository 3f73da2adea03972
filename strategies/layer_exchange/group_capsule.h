// Keeps the group in an autograd node for its backward pass.
#pragma once

#include <ATen/core/ivalue.h>

#include "strategies/layer_exchange/exchange_group.h"

namespace stratagem::layer_exchange {

/// The group outlives the graph, like the layers.
struct GroupCapsule : torch::CustomClassHolder {
  explicit GroupCapsule(ExchangeGroup& of) : group(of) {}
  ExchangeGroup& group;
};

inline c10::IValue capsule_of(ExchangeGroup& group) {
  return c10::IValue::make_capsule(c10::make_intrusive<GroupCapsule>(group));
}

inline ExchangeGroup& group_in(const c10::IValue& capsule) {
  return c10::static_intrusive_pointer_cast<GroupCapsule>(capsule.toCapsule())->group;
}

}  // namespace stratagem::layer_exchange
