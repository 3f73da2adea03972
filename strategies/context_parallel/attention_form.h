// AttentionForm: a way in which ranks with parts of each sample's positions compute attention over
// all of them. It registers itself (STRATAGEM_REGISTER), so that a form is one file.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "models/cpu_kernels/row_functions.h"
#include "models/registry/named_entries.h"
#include "strategies/context_parallel/context_positions.h"
#include "strategies/costs.h"
#include "strategies/layer_exchange/exchange_group.h"

namespace stratagem::context_parallel {

/// The ranks that share positions.
struct SharedPositions {
  layer_exchange::ExchangeGroup& group;
  ContextOrder order;
};

/// One pass of attention on one rank.
struct AttentionPass {
  bool is_backward = false;
  std::int64_t output_bytes = 0;    // of the own positions and all heads of the rank
  std::int64_t gradient_bytes = 0;  // the same in the format in which ranks sum gradients
  models::GroupedHeads heads = {};  // of the rank
  int ranks = 1;
  bool keep_gathered = false;  // see layer_exchange::ExchangeOptions

  /// Return the bytes of keys, or values, and of their gradients.
  std::int64_t key_bytes() const { return output_bytes / heads.queries; }
  std::int64_t key_gradient_bytes() const { return gradient_bytes / heads.queries; }
};

struct AttentionForm {
  std::string name = {};
  /// See models::SequencePart::Attention. Collective, also in its backward pass.
  at::Tensor (*attention)(const at::Tensor& qkv, const models::GroupedHeads& heads,
                          const SharedPositions& shared) = nullptr;
  /// Returns the calls and payloads of a pass, by formula.
  strategies::CommunicationCounts (*calls)(const AttentionPass& pass) = nullptr;
  /// The order of positions that it needs; if unset, the options decide.
  std::optional<ContextOrder> order = {};
  /// Each rank computes some of the heads, so the ranks must divide them.
  bool shares_heads = false;

  std::string lacks() const {
    return attention == nullptr ? "attention" : calls == nullptr ? "calls" : "";
  }
  static models::Registry<AttentionForm>& registry();
};

/// Returns the form that the options name.
const AttentionForm& form_of(const strategies::StrategyOptions& options);

/// Returns the order of the options' form, or else their own.
ContextOrder order_of(const strategies::StrategyOptions& options);

}  // namespace stratagem::context_parallel
