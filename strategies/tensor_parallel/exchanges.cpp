#include "strategies/tensor_parallel/exchanges.h"

#include "models/basic_layers.h"
#include "models/transformer.h"

namespace stratagem::tensor_parallel {
namespace {

void add_call(Communication& communication, const std::string& collective, std::int64_t bytes) {
  communication[collective] += {.calls = 1, .payload_bytes = bytes};
}

/// Of `bytes` of a column-parallel layer's input: in the backward pass the sum of its gradient. By
/// sequence it is gathered, and unless it is kept again in the backward pass.
void add_input(Communication& calls, std::int64_t bytes, const ExchangeWay& way,
               bool needs_gradient) {
  const bool by_sequence = way.layout == Layout::sequence;
  const int gathers = !by_sequence ? 0 : way.keep_gathered ? 1 : 2;
  for (int gather = 0; gather < gathers; ++gather) {
    add_call(calls, "all_gather", bytes / way.ranks);
  }
  if (needs_gradient) add_call(calls, by_sequence ? "reduce_scatter" : "all_reduce", bytes);
}

void add_sum(Communication& calls, std::int64_t bytes, const ExchangeWay& way) {
  if (way.layout == Layout::tensor) return add_call(calls, "all_reduce", bytes);
  add_call(calls, "reduce_scatter", bytes);
  add_call(calls, "all_gather", bytes / way.ranks);
}

void add_linear(std::vector<Exchange>& all, const models::LinearLayer& layer, LinearRole role) {
  using Kind = Exchange::Kind;
  const std::int64_t outputs = layer.weight().size(0);
  const std::int64_t inputs = layer.weight().size(1);
  switch (role) {
    case LinearRole::whole:
      return;
    case LinearRole::row:
      return all.push_back({Kind::sum, outputs});
    case LinearRole::gathered_column:
      all.push_back({Kind::input, inputs});
      return all.push_back({Kind::outputs, outputs});
    case LinearRole::column:
    case LinearRole::head:
      return all.push_back({Kind::input, inputs});
  }
}

}  // namespace

std::vector<Exchange> exchanges_of(models::LayerSpan whole, const LinearRoles& roles,
                                   bool predicts_tokens, bool ends_model) {
  using Kind = Exchange::Kind;
  std::vector<Exchange> all;
  for (const auto& layer : whole) {
    if (const auto* embedding = dynamic_cast<models::TokenEmbeddingLayer*>(layer.get())) {
      all.push_back({Kind::sum, embedding->position().size(1)});
    } else if (dynamic_cast<models::TransformerBlock*>(layer.get()) != nullptr) {
      // Its first parameter is the weight of a normalisation over the features.
      const std::int64_t features = layer->parameters().front().tensor.size(0);
      for (const Kind kind : {Kind::input, Kind::sum, Kind::input, Kind::sum}) {
        all.push_back({kind, features});
      }
    } else if (const auto* linear = dynamic_cast<models::LinearLayer*>(layer.get())) {
      const bool head = predicts_tokens && ends_model && layer == whole.back();
      add_linear(all, *linear, head ? LinearRole::head : roles.at(layer->name()));
      if (head) all.push_back({Kind::loss, linear->weight().size(0)});
    }
  }
  return all;
}

Communication communication_of(const std::vector<Exchange>& exchanges, const ExchangeWay& way,
                               LayerInput work) {
  Communication calls;
  for (const auto& [kind, features] : exchanges) {
    const std::int64_t bytes = work.positions * features * work.element_bytes;
    switch (kind) {
      case Exchange::Kind::input:
        add_input(calls, bytes, way, work.input_needs_gradient);
        break;
      case Exchange::Kind::sum:
        add_sum(calls, bytes, way);
        break;
      case Exchange::Kind::outputs:
        add_call(calls, "all_gather", bytes / way.ranks);
        break;
      case Exchange::Kind::loss:
        add_call(calls, "all_reduce", work.positions * work.loss_bytes);
        add_call(calls, "all_reduce", 2 * work.positions * work.loss_bytes);
        break;
    }
    work.input_needs_gradient = true;  // that of a later layer comes from one with parameters
  }
  return calls;
}

}  // namespace stratagem::tensor_parallel
