// The functions that ATen's kernels compute on a thread that may take ours: an addition to
// `--kernels own` in a row's record.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace stratagem::models {

/// Returns whether our kernels may compute `function` of x, images [n, c, h, w]. Records on this
/// thread a number format or layout of x that they do not support; reference kernels and other
/// devices are not recorded.
bool may_take_own_kernels(const at::Tensor& x, const char* function);

/// Returns this thread's records: {"convolution": "reduced precision"}.
const std::map<std::string, std::string>& functions_left_to_aten();

}  // namespace stratagem::models
