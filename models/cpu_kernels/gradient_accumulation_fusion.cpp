#include "models/cpu_kernels/gradient_accumulation_fusion.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include "models/cpu_kernels/linear.h"
#include "models/cpu_kernels/reference_kernels.h"

namespace stratagem::models {
namespace {

// Returns false for a backward pass that returns the requested gradients and sums none.
bool sums_gradients() {
  const auto* const asked = torch::autograd::get_current_graph_task_exec_info();
  return asked == nullptr || asked->empty();
}

// Returns a gradient [o, i] or [o, c, k, k] as rows [o, i], or undefined if they have gaps.
at::Tensor rows_of(const at::Tensor& gradient) {
  if (gradient.dim() == 2) return gradient.is_contiguous() ? gradient : at::Tensor();
  if (gradient.dim() != 4 || !gradient.is_contiguous(at::MemoryFormat::ChannelsLast)) return {};
  return gradient.permute({0, 2, 3, 1}).view({gradient.size(0), -1});
}

}  // namespace

bool gradient_has_hooks(const at::Tensor& weight) {
  if (!weight.is_leaf() || !torch::autograd::impl::hooks(weight).empty() ||
      torch::autograd::impl::post_acc_grad_hooks(weight) != nullptr) {
    return true;
  }
  const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(weight);
  return accumulator && (!accumulator->pre_hooks().empty() || !accumulator->post_hooks().empty() ||
                         !accumulator->tensor_pre_hooks().empty());
}

at::Tensor gradient_to_accumulate_into(const at::Tensor& weight) {
  // Only a leaf has grad(): autograd warns about it on any other tensor.
  if (uses_reference_kernels() || !weight.is_leaf() || !weight.grad().defined()) return {};
  const bool autograd_sums = at::GradMode::is_enabled() || !sums_gradients();
  return autograd_sums || gradient_has_hooks(weight) ? at::Tensor() : weight.grad();
}

bool accumulate_into_gradient(const at::Tensor& weight, const at::Tensor& left,
                              const at::Tensor& right) {
  const at::Tensor sum = gradient_to_accumulate_into(weight);
  if (!sum.defined() || sum.scalar_type() != left.scalar_type()) return false;
  const at::Tensor rows = rows_of(sum);
  if (!rows.defined()) return false;
  add_transposed_product(rows, left, right);
  return true;
}

}  // namespace stratagem::models
