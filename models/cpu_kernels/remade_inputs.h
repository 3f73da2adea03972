// Selective recomputation: a linear layer's input that a cheap function makes, such as a norm, an
// activation function or attention, is made again in the backward pass instead of being kept. The
// function's own input is kept anyway, for its own derivative (Korthikanti et al. 2022, "Reducing
// Activation Recomputation in Large Transformer Models", section 5).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>

namespace torch::autograd {
struct AutogradContext;
}

namespace stratagem::models {

using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;

/// The part of a backward pass that makes an input again. One in two halves has the weights'
/// gradients in the second (deferred_weight_gradients.h).
enum class RemadeInputs {
  never,              // inputs are kept
  at_once,            // in the first half: parameters may be freed before the second
  with_the_gradient,  // just before it is used
};

/// Returns what forward passes on this thread leave to backward passes.
RemadeInputs remade_inputs();

/// Sets this until the end of the scope.
class RemadeInputsGuard {
 public:
  explicit RemadeInputsGuard(RemadeInputs remade);
  ~RemadeInputsGuard();
  RemadeInputsGuard(const RemadeInputsGuard&) = delete;
  RemadeInputsGuard& operator=(const RemadeInputsGuard&) = delete;

 private:
  RemadeInputs previous_;
};

/// Returns layer(make(from)). While inputs are remade, linear() in `layer`, called on exactly
/// make(from), keeps `from` instead. `make` must be alive in the backward pass, and must
/// return equal bits then.
at::Tensor on_remade_input(const TensorFunction& layer, const TensorFunction& make,
                           const at::Tensor& from);

/// Returns what a node keeps of an input `x` in its forward pass: `x`, or nothing if the context
/// got what makes it again.
at::Tensor kept_input(torch::autograd::AutogradContext& context, const at::Tensor& x);

/// Called in the node's backward pass, once; `kept` is what kept_input() returned. Returns what
/// gives the input, once.
std::function<at::Tensor()> input_of(const torch::autograd::AutogradContext& context,
                                     const at::Tensor& kept);

}  // namespace stratagem::models
