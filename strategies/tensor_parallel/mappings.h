// Functions between what all ranks have and what each has a part of, each with its conjugate as the
// backward pass (Shoeybi et al. 2019, "Megatron-LM", section 3, g; Korthikanti et al. 2022,
// "Reducing Activation Recomputation", section 4.2, g-bar).
#pragma once

#include "strategies/tensor_parallel/tensor_group.h"

namespace stratagem::tensor_parallel {

/// Forward an all-reduce, backward nothing: for products of which every rank has a partial sum.
at::Tensor reduce_from_ranks(const at::Tensor& x, TensorGroup& group);

/// Forward a reduce-scatter, backward an all-gather, along `dimension`.
at::Tensor scatter_to_ranks(const at::Tensor& x, TensorGroup& group, std::int64_t dimension);

/// Forward an all-gather, backward this rank's part of the gradient, which every rank has whole.
at::Tensor all_gather_whole_gradient(const at::Tensor& x, TensorGroup& group,
                                     std::int64_t dimension);

}  // namespace stratagem::tensor_parallel
