#include "strategies/tensor_parallel/linear_roles.h"

#include <algorithm>

#include "models/basic_layers.h"
#include "strategies/tensor_parallel/sharded_form.h"

namespace stratagem::tensor_parallel {

using models::LinearLayer;

namespace {

bool may_stand_in_a_pair(const models::Layer& layer) {
  const ShardedForm* const form = find_form(layer);
  return form != nullptr && form->element_wise;
}

}  // namespace

LinearRoles linear_roles(const models::LayerList& layers,
                         const std::vector<std::size_t>& boundaries, int ranks,
                         bool predicts_tokens) {
  LinearRoles roles;
  const LinearLayer* first = nullptr;  // the first of a pair, without a second one yet
  const auto leave_over = [&] {
    if (first == nullptr) return;
    const bool divisible = first->weight().size(0) % ranks == 0;
    roles[first->name()] = divisible ? LinearRole::gathered_column : LinearRole::whole;
    first = nullptr;
  };
  for (std::size_t index = 0; index < layers.size(); ++index) {
    if (std::ranges::find(boundaries, index) != boundaries.end()) leave_over();
    const auto* linear = dynamic_cast<const LinearLayer*>(layers[index].get());
    if (linear == nullptr) {
      if (!may_stand_in_a_pair(*layers[index])) leave_over();
      continue;
    }
    if (predicts_tokens && index + 1 == layers.size()) {
      leave_over();
      roles[linear->name()] = LinearRole::head;
    } else if (first == nullptr) {
      first = linear;
    } else {
      roles[first->name()] = LinearRole::column;
      roles[linear->name()] = LinearRole::row;
      first = nullptr;
    }
  }
  leave_over();
  return roles;
}

}  // namespace stratagem::tensor_parallel
