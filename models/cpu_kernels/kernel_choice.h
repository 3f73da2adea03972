// The choice between our kernels and ATen's, and the functions that ATen's kernels compute on a
// thread that may take ours: an addition to `--kernels own` in a row's record.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "models/cpu_kernels/kernels/choices.h"
#include "models/cpu_kernels/kernels/row_kernels.h"

namespace stratagem::models {

/// Returns whether our kernels may compute `function` of x, images [n, c, h, w]. Records on this
/// thread a number format or layout of x that they do not support; reference kernels and other
/// devices are not recorded.
bool may_take_own_kernels(const at::Tensor& x, const char* function);

/// Records on this thread that ATen computes `function` of x, a CPU tensor, and why.
void record_left_to_aten(const at::Tensor& x, const char* function, const char* why);

/// Returns whether row kernels take the tensor: float32 or float64 on the CPU.
bool takes_row_kernels(const at::Tensor& x);

/// Calls work(T(), kernels) with the row kernels of the tensor's format.
template <class Work>
void with_row_kernels(const at::Tensor& of, const Work& work) {
  if (of.scalar_type() == at::kDouble) {
    work(double(), kernels::best_kernels<kernels::RowKernels<double>>());
  } else {
    work(float(), kernels::best_kernels<kernels::RowKernels<float>>());
  }
}

/// Returns this thread's records: {"convolution": "reduced precision"}.
const std::map<std::string, std::string>& functions_left_to_aten();

}  // namespace stratagem::models
