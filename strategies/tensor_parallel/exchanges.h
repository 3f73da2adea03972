// The exchanges of layers with the ranks of their other parts, by formula: from the model's whole
// layers, not from the sharded ones, so that a verification notices a difference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "strategies/costs.h"
#include "strategies/tensor_parallel/layout.h"
#include "strategies/tensor_parallel/linear_roles.h"

namespace stratagem::tensor_parallel {

using Communication = strategies::CommunicationCounts;

/// One exchange in a micro-batch's forward and backward pass.
struct Exchange {
  enum class Kind {
    input,    // the input of a column-parallel layer
    sum,      // the outputs of which each rank has a partial sum
    outputs,  // outputs gathered from all ranks
    loss,     // the loss of sharded logits: their maximum, two sums
  };
  Kind kind = Kind::sum;
  std::int64_t features = 0;  // per position, on all ranks

  bool operator==(const Exchange&) const = default;
};

/// Returns the exchanges of a stage's layers in the order of the forward pass. `predicts_tokens`: a
/// language model, which never gathers its logits. `ends_model`: the loss follows.
std::vector<Exchange> exchanges_of(models::LayerSpan whole, const LinearRoles& roles,
                                   bool predicts_tokens, bool ends_model);

/// The way in which the ranks exchange.
struct ExchangeWay {
  Layout layout = Layout::tensor;
  bool keep_gathered = false;  // see layer_exchange::ExchangeOptions
  int ranks = 1;
};

/// One micro-batch of the layers.
struct LayerInput {
  std::int64_t positions = 0;  // samples x sequence length, on all ranks
  std::int64_t element_bytes = 0;
  std::int64_t loss_bytes = 0;  // the size of an element of the loss
  bool input_needs_gradient = true;
  bool is_recomputed = false;  // only the forward pass, up to the loss
};

/// Returns the calls and bytes of one rank.
Communication communication_of(const std::vector<Exchange>& exchanges, const ExchangeWay& way,
                               LayerInput work);

}  // namespace stratagem::tensor_parallel
