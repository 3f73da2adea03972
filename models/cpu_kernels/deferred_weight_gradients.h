// Backward in two halves: I, the gradient of the input, which the stage before waits for, and W,
// the gradients of the weights, which can wait for a bubble (Qi, Wan, Huang, Lin 2023, "Zero Bubble
// Pipeline Parallelism", section 2).
//
// While a forward pass defers its weight gradients, the functions of models/cpu_kernels/functions.h
// record one autograd node each that computes the input gradient when autograd reaches it and
// defers the rest, with the tensors that it needs. W then computes what was deferred: autograd's
// graph is traversed once, and no parameter has a gradient of the micro-batch before.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <utility>
#include <vector>

namespace torch::autograd {
struct AutogradContext;
}

namespace stratagem::models {

class DeferredWeightGradients : public torch::CustomClassHolder {
 public:
  /// `compute` returns the gradient of `parameter`, a leaf, or undefined where it has added it
  /// itself. On the thread of the backward pass. `begin`, where given, starts what `compute` waits
  /// for: it is called one such gradient ahead, so that it overlaps with the one before.
  void defer(at::Tensor parameter, std::function<at::Tensor()> compute,
             std::function<void()> begin = {});

  /// Computes what was deferred and accumulates it as autograd does, hooks included; then nothing
  /// is deferred.
  void run();

  std::size_t size() const { return deferred_.size(); }

 private:
  struct Deferred {
    at::Tensor parameter;
    std::function<at::Tensor()> compute;
    std::function<void()> begin;
  };
  std::vector<Deferred> deferred_;
};

using DeferredWeightGradientsPointer = c10::intrusive_ptr<DeferredWeightGradients>;

/// Where forward passes on this thread defer their weight gradients to; null where backward passes
/// compute them at once.
const DeferredWeightGradientsPointer& current_deferred_weight_gradients();

/// Sets that until the end of the scope.
class DeferWeightGradientsGuard {
 public:
  explicit DeferWeightGradientsGuard(DeferredWeightGradientsPointer deferred);
  ~DeferWeightGradientsGuard();
  DeferWeightGradientsGuard(const DeferWeightGradientsGuard&) = delete;
  DeferWeightGradientsGuard& operator=(const DeferWeightGradientsGuard&) = delete;

 private:
  DeferredWeightGradientsPointer previous_;
};

/// In a node's forward pass: keeps the current ones for its backward pass.
void save_deferred_weight_gradients(torch::autograd::AutogradContext& context);

/// In its backward pass: those that its forward pass has kept; null where it computes its weight
/// gradients itself.
DeferredWeightGradientsPointer saved_deferred_weight_gradients(
    const torch::autograd::AutogradContext& context);

}  // namespace stratagem::models
