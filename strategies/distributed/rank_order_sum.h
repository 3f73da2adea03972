// Sums of what several ranks sent, in the order of the ranks, so that the bits of a sum depend
// neither on who came first nor on who adds.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace stratagem::distributed {

/// Whether `output` can hold a sum of `part`'s: of the same type, or in float32 of bfloat16 and
/// float16.
bool holds_sum_of(const at::Tensor& output, const at::Tensor& part);

/// `output` [elements] becomes parts[0] + parts[1] + ..., each [elements], added from left to
/// right; bfloat16 and float16 in float32, rounded once at the end where `output` is not float32. A
/// part may be `output` itself if it is one of the first two, or of 16 bits.
void sum_in_rank_order(const at::Tensor& output, const std::vector<at::Tensor>& parts);

}  // namespace stratagem::distributed
