#include "models/cpu_kernels/remade_inputs.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace stratagem::models {
namespace {

constexpr const char* remade_key = "remade_input";

struct RemadeInput : torch::CustomClassHolder {
  at::Tensor made;
  std::function<at::Tensor()> make;
  bool at_once = false;
};

using RemadeInputPointer = c10::intrusive_ptr<RemadeInput>;

thread_local RemadeInputs current_remade = RemadeInputs::never;
thread_local RemadeInputPointer current_input;

}  // namespace

RemadeInputs remade_inputs() { return current_remade; }

RemadeInputsGuard::RemadeInputsGuard(RemadeInputs remade)
    : previous_(std::exchange(current_remade, remade)) {}

RemadeInputsGuard::~RemadeInputsGuard() { current_remade = previous_; }

at::Tensor on_remade_input(const TensorFunction& layer, const TensorFunction& make,
                           const at::Tensor& from) {
  const at::Tensor made = make(from);
  if (current_remade == RemadeInputs::never || !at::GradMode::is_enabled()) return layer(made);
  current_input = c10::make_intrusive<RemadeInput>();
  current_input->made = made;
  current_input->make = [make, from = from.detach()] {
    const at::NoGradGuard no_gradient;
    return make(from);
  };
  current_input->at_once = current_remade == RemadeInputs::at_once;
  at::Tensor result = layer(made);
  current_input.reset();
  return result;
}

at::Tensor kept_input(torch::autograd::AutogradContext& context, const at::Tensor& x) {
  const RemadeInputPointer remade = std::exchange(current_input, nullptr);
  if (!remade) return x;
  const bool is_it =
      x.const_data_ptr() == remade->made.const_data_ptr() && x.numel() == remade->made.numel();
  if (!is_it) return x;
  remade->made.reset();
  context.saved_data[remade_key] = c10::IValue::make_capsule(remade);
  return {};
}

std::function<at::Tensor()> input_of(const torch::autograd::AutogradContext& context,
                                     const at::Tensor& kept) {
  if (kept.defined()) return [kept = kept.variable_data()] { return kept; };
  const auto remade = c10::static_intrusive_pointer_cast<RemadeInput>(
      context.saved_data.at(remade_key).toCapsule());
  // The node must not keep the function's input any longer.
  std::function<at::Tensor()> make = std::exchange(remade->make, nullptr);
  if (!remade->at_once) return make;
  return [made = make()] { return made; };
}

}  // namespace stratagem::models
