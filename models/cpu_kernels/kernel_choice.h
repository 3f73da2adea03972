// Where ATen's kernels stand in for ours on a thread that may take ours: what a row's record says
// beside `--kernels own`.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace stratagem::models {

/// Whether kernels of ours may compute `function` of x, images [n, c, h, w]. What ours do not know
/// of, x's number format or layout, is noted on this thread; reference kernels and other devices
/// are nothing to note.
bool may_take_own_kernels(const at::Tensor& x, const char* function);

/// Whatever was noted on this thread: {"convolution": "reduced precision"}.
const std::map<std::string, std::string>& functions_left_to_aten();

}  // namespace stratagem::models
