// Linear layers outside transformer blocks, by their roles (linear_roles.h).
#include <utility>

#include "strategies/tensor_parallel/sharded_form.h"

namespace stratagem::tensor_parallel {
namespace {

using models::LinearLayer;

bool is_linear(const models::Layer& layer) {
  return dynamic_cast<const LinearLayer*>(&layer) != nullptr;
}

LayerPointer part_of_linear(LayerPointer whole, Sharder& sharder) {
  auto& layer = dynamic_cast<LinearLayer&>(*whole);
  const LinearRole role = sharder.role_of(layer);
  if (role == LinearRole::whole) return whole;
  if (role == LinearRole::row) return sharder.row(layer, by_columns);
  return sharder.column(layer, by_rows, /*gather_output=*/role == LinearRole::gathered_column);
}

std::vector<Exchange> exchanges_of_linear(const PlacedLayer& whole) {
  using Kind = Exchange::Kind;
  const auto& layer = dynamic_cast<const LinearLayer&>(whole.layer);
  const std::int64_t outputs = layer.weight().size(0);
  const std::int64_t inputs = layer.weight().size(1);
  if (whole.is_head) return {{Kind::input, inputs}, {Kind::loss, outputs}};
  switch (whole.roles.at(layer.name())) {
    case LinearRole::whole:
      return {};
    case LinearRole::row:
      return {{Kind::sum, outputs}};
    case LinearRole::gathered_column:
      return {{Kind::input, inputs}, {Kind::outputs, outputs}};
    case LinearRole::column:
    case LinearRole::head:
      return {{Kind::input, inputs}};
  }
  return {};
}

STRATAGEM_REGISTER(ShardedForm{.name = "linear layer",
                               .is_of = is_linear,
                               .make = part_of_linear,
                               .exchanges = exchanges_of_linear});

}  // namespace
}  // namespace stratagem::tensor_parallel
