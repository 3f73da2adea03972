// Sums of several ranks' parts in the order of the ranks, so that the bits of a sum depend neither
// on the order of arrival nor on the adding rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stratagem::distributed {

/// Returns whether `output` can hold a sum of tensors like `part`: of the same type, or float32 for
/// bfloat16 and float16.
bool holds_sum_of(const at::Tensor& output, const at::Tensor& part);

/// Sets `output` [elements] to parts[0] + parts[1] + ..., each [elements], added from left to
/// right; bfloat16 and float16 in float32, rounded once at the end if `output` is not float32. A
/// part may be `output` itself if it is one of the first two, or of 16 bits.
void sum_in_rank_order(const at::Tensor& output, const std::vector<at::Tensor>& parts);

}  // namespace stratagem::distributed
