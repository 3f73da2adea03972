#include "strategies/tensor_parallel/exchanges.h"

#include "strategies/tensor_parallel/sharded_form.h"

namespace stratagem::tensor_parallel {
namespace {

void add_call(Communication& communication, const std::string& collective, std::int64_t bytes) {
  communication[collective] += {.calls = 1, .payload_bytes = bytes};
}

/// Adds the calls for a column-parallel layer's input: in the backward pass the sum of its
/// gradient. By sequence it is gathered, and, unless it is kept, again in the backward pass.
void add_input(Communication& calls, std::int64_t bytes, const ExchangeWay& way,
               const LayerInput& work) {
  const bool by_sequence = way.layout == Layout::sequence;
  const int gathers = !by_sequence ? 0 : way.keep_gathered || work.is_recomputed ? 1 : 2;
  for (int gather = 0; gather < gathers; ++gather) {
    add_call(calls, "all_gather", bytes / way.ranks);
  }
  if (!work.input_needs_gradient || work.is_recomputed) return;
  add_call(calls, by_sequence ? "reduce_scatter" : "all_reduce", bytes);
}

void add_sum(Communication& calls, std::int64_t bytes, const ExchangeWay& way,
             const LayerInput& work) {
  if (way.layout == Layout::tensor) return add_call(calls, "all_reduce", bytes);
  add_call(calls, "reduce_scatter", bytes);
  if (!work.is_recomputed) add_call(calls, "all_gather", bytes / way.ranks);
}

}  // namespace

std::vector<Exchange> exchanges_of(models::LayerSpan whole, const LinearRoles& roles,
                                   bool predicts_tokens, bool ends_model) {
  std::vector<Exchange> all;
  for (const auto& layer : whole) {
    const ShardedForm* const form = find_form(*layer);
    if (form == nullptr || form->exchanges == nullptr) continue;
    const bool is_head = predicts_tokens && ends_model && layer == whole.back();
    const auto own = form->exchanges({.layer = *layer, .roles = roles, .is_head = is_head});
    all.insert(all.end(), own.begin(), own.end());
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
        add_input(calls, bytes, way, work);
        break;
      case Exchange::Kind::sum:
        add_sum(calls, bytes, way, work);
        break;
      case Exchange::Kind::outputs:
        add_call(calls, "all_gather", bytes / way.ranks);
        break;
      case Exchange::Kind::loss:
        if (work.is_recomputed) break;  // the loss is computed once
        add_call(calls, "all_reduce", work.positions * work.loss_bytes);
        add_call(calls, "all_reduce", 2 * work.positions * work.loss_bytes);
        break;
    }
    work.input_needs_gradient = true;  // a later layer's input comes from parameters
  }
  return calls;
}

}  // namespace stratagem::tensor_parallel
