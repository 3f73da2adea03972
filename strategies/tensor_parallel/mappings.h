// The four functions between what all ranks have and what each has a part of. Each one's backward
// is the other of its pair (Shoeybi et al. 2019, "Megatron-LM", section 3, f and g; Korthikanti et
// al. 2022, "Reducing Activation Recomputation", section 4.2, g and g-bar).
#pragma once

#include "strategies/tensor_parallel/tensor_group.h"

namespace stratagem::tensor_parallel {

/// Forward nothing, backward an all-reduce: for an input that every rank multiplies by its own part
/// of a matrix.
at::Tensor copy_to_ranks(const at::Tensor& x, TensorGroup& group);

/// Forward an all-reduce, backward nothing: for products of which every rank has a partial sum.
at::Tensor reduce_from_ranks(const at::Tensor& x, TensorGroup& group);

/// Forward an all-gather, backward a reduce-scatter, along `dimension`.
at::Tensor gather_from_ranks(const at::Tensor& x, TensorGroup& group, std::int64_t dimension);

/// Forward a reduce-scatter, backward an all-gather, along `dimension`.
at::Tensor scatter_to_ranks(const at::Tensor& x, TensorGroup& group, std::int64_t dimension);

/// Forward an all-gather, backward this rank's part of the gradient, which every rank has whole.
at::Tensor all_gather_whole_gradient(const at::Tensor& x, TensorGroup& group,
                                     std::int64_t dimension);

/// Forward this rank's part, backward an all-gather.
at::Tensor split_to_own_part(const at::Tensor& x, TensorGroup& group, std::int64_t dimension);

}  // namespace stratagem::tensor_parallel
