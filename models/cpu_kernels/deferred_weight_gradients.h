// The two halves of a backward pass: I, the gradient of the input, for which the stage before
// waits, and W, the gradients of the weights, which can wait for a bubble (Qi, Wan, Huang, Lin
// 2023, "Zero Bubble Pipeline Parallelism", section 2).
//
// While a forward pass defers its weight gradients, each function of models/cpu_kernels/functions.h
// records one autograd node. It computes the input gradient when autograd reaches it and defers the
// rest, with the necessary tensors. W computes the deferred part: autograd's graph is traversed
// once, and no parameter has a gradient of the micro-batch before.
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
  /// `compute` returns the gradient of `parameter`, a leaf, or undefined if it has added it itself.
  /// It runs on the backward pass's thread. `begin`, if given, starts the work that `compute`
  /// awaits; it is called one such gradient ahead, so that it overlaps with the one before.
  void defer(at::Tensor parameter, std::function<at::Tensor()> compute,
             std::function<void()> begin = {});

  /// Computes the deferred gradients and accumulates them as autograd does, hooks included. Empties
  /// the list.
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

/// Returns the list to which forward passes on this thread defer their weight gradients, or null if
/// backward passes compute them at once.
const DeferredWeightGradientsPointer& current_deferred_weight_gradients();

/// Sets the current list until the end of the scope.
class DeferWeightGradientsGuard {
 public:
  explicit DeferWeightGradientsGuard(DeferredWeightGradientsPointer deferred);
  ~DeferWeightGradientsGuard();
  DeferWeightGradientsGuard(const DeferWeightGradientsGuard&) = delete;
  DeferWeightGradientsGuard& operator=(const DeferWeightGradientsGuard&) = delete;

 private:
  DeferredWeightGradientsPointer previous_;
};

/// Keeps the current list in a node's forward pass for its backward pass.
void save_deferred_weight_gradients(torch::autograd::AutogradContext& context);

/// Returns the list kept by the forward pass, or null if the backward pass computes its weight
/// gradients itself.
DeferredWeightGradientsPointer saved_deferred_weight_gradients(
    const torch::autograd::AutogradContext& context);

}  // namespace stratagem::models
