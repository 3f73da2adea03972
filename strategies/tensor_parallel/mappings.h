// Functions between whole tensors and each rank's parts, each with its conjugate as the backward
// pass (Shoeybi et al. 2019, "Megatron-LM", section 3, g; Korthikanti et al. 2022, "Reducing
// Activation Recomputation", section 4.2, g-bar).
#pragma once

#include "strategies/layer_exchange/exchange_group.h"

namespace stratagem::tensor_parallel {

/// All-reduces partial sums of products forward; does nothing backward.
at::Tensor reduce_from_ranks(const at::Tensor& x, layer_exchange::ExchangeGroup& group);

/// Reduce-scatters forward and all-gathers backward, along `dimension`.
at::Tensor scatter_to_ranks(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                            std::int64_t dimension);

/// All-gathers forward; backward takes this rank's part of a gradient that all ranks have whole.
at::Tensor all_gather_whole_gradient(const at::Tensor& x, layer_exchange::ExchangeGroup& group,
                                     std::int64_t dimension);

}  // namespace stratagem::tensor_parallel
