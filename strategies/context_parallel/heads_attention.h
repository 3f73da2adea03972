// Attention whose heads are shared by the ranks that share a sequence: an all-to-all turns parts of
// the positions into parts of the heads, and another one turns the result back (Jacobs et al. 2023,
// "DeepSpeed Ulysses", section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "strategies/layer_exchange/exchange_group.h"

namespace stratagem::context_parallel {

/// Computes models::causal_attention over the ranks' positions, in the order of the ranks. `qkv` is
/// [n, own positions, 3 features]; returns [n, own positions, features]. The ranks must divide
/// `heads`. Collective: two calls, and two in the backward pass.
at::Tensor heads_attention(const at::Tensor& qkv, std::int64_t heads,
                           layer_exchange::ExchangeGroup& group);

}  // namespace stratagem::context_parallel
