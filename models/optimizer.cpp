#include "models/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>
#include <utility>

namespace stratagem::models {
namespace {

using Kind = OptimizerOptions::Kind;

// The fused CPU kernels walk raw memory, so all tensors of one parameter must share its layout.
// Strides of dimensions of size one do not matter.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

at::Tensor gradient_of(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  if (same_layout(parameter, gradient)) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

// torch 2.11's fused SGD on the CPU leaves float16 and bfloat16 parameters unchanged, except for
// the elements beyond the last full vector (pytorch issue 191763).
bool fused_sgd_works(const at::Tensor& parameter) {
  return !parameter.is_cpu() || !at::isReducedFloatingType(parameter.scalar_type());
}

// `buffer` is undefined without momentum.
void plain_sgd(const at::Tensor& parameter, at::Tensor buffer, const OptimizerOptions& options,
               bool first) {
  at::Tensor update = parameter.grad();
  if (options.weight_decay != 0) update = update.add(parameter, options.weight_decay);
  if (buffer.defined()) {
    buffer.mul_(first ? 0.0 : options.momentum).add_(update);
    update = buffer;
  }
  at::Tensor(parameter).add_(update, -options.learning_rate);
}

std::vector<std::string_view> state_kinds(const OptimizerOptions& options) {
  if (options.kind != Kind::sgd) return {"exp_avg", "exp_avg_sq", "step"};
  if (options.momentum != 0) return {"momentum_buffer"};
  return {};
}

// Adam's step count, which the fused kernels take as a separate tensor.
constexpr at::ScalarType step_type = at::kFloat;

void require(bool valid, const std::string& message) {
  if (!valid) throw std::invalid_argument(message);
}

}  // namespace

std::int64_t state_bytes(const OptimizerOptions& options, const at::Tensor& parameter) {
  std::int64_t bytes = 0;
  for (const std::string_view kind : state_kinds(options)) {
    bytes += static_cast<std::int64_t>(kind == "step" ? c10::elementSize(step_type)
                                                      : parameter.nbytes());
  }
  return bytes;
}

Optimizer::Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : options_(options), state_kinds_(state_kinds(options)) {
  require(options.learning_rate >= 0, "learning rate must be 0 or more");
  require(options.momentum >= 0, "momentum must be 0 or more");
  require(options.weight_decay >= 0, "weight decay must be 0 or more");
  require(options.beta1 >= 0 && options.beta1 < 1, "beta1 must lie in [0, 1)");
  require(options.beta2 >= 0 && options.beta2 < 1, "beta2 must lie in [0, 1)");
  require(options.epsilon >= 0, "epsilon must be 0 or more");
  for (NamedTensor& parameter : parameters) slots_.push_back({std::move(parameter), {}});
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> Optimizer::step() {
  const at::NoGradGuard no_grad;
  std::vector<Slot*> fresh;
  std::vector<Slot*> running;
  std::vector<at::Tensor> begun;
  for (Slot& slot : slots_) {
    if (slot.parameter.tensor.grad().defined()) {
      const bool first = !state_kinds_.empty() && slot.state.empty();
      (first ? fresh : running).push_back(&slot);
      if (!first) continue;
      start(slot);
      begun.insert(begun.end(), slot.state.begin(), slot.state.end());
    }
  }
  if (options_.kind == Kind::sgd) {
    step_sgd(fresh, true);
    step_sgd(running, false);
  } else {
    fresh.insert(fresh.end(), running.begin(), running.end());
    step_adam(fresh);
  }
  count_the_write();
  return begun;
}

// ATen's fused optimizers write in place without incrementing the version, on which values derived
// from a parameter rely (see packed_weights.h).
void Optimizer::count_the_write() {
  for (const Slot& slot : slots_) {
    const at::Tensor& parameter = slot.parameter.tensor;
    if (parameter.grad().defined()) parameter.unsafeGetTensorImpl()->bump_version();
  }
}

void Optimizer::step_sgd(const std::vector<Slot*>& slots, bool first) {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> buffers;
  for (const Slot* slot : slots) {
    const at::Tensor& parameter = slot->parameter.tensor;
    if (!fused_sgd_works(parameter)) {
      plain_sgd(parameter, slot->state.empty() ? at::Tensor() : slot->state[0], options_, first);
      continue;
    }
    parameters.push_back(parameter);
    gradients.push_back(gradient_of(parameter));
    buffers.insert(buffers.end(), slot->state.begin(), slot->state.end());
  }
  if (!parameters.empty()) {
    at::_fused_sgd_(parameters, gradients, buffers, options_.weight_decay, options_.momentum,
                    options_.learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                    /*maximize=*/false, first);
  }
}

void Optimizer::step_adam(const std::vector<Slot*>& slots) {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> averages;
  std::vector<at::Tensor> square_averages;
  std::vector<at::Tensor> steps;
  for (Slot* slot : slots) {
    parameters.push_back(slot->parameter.tensor);
    gradients.push_back(gradient_of(slot->parameter.tensor));
    averages.push_back(slot->state[0]);
    square_averages.push_back(slot->state[1]);
    steps.push_back(slot->state[2]);
  }
  if (slots.empty()) return;
  at::_foreach_add_(steps, 1);  // one kernel for all on a GPU
  const auto update =
      options_.kind == Kind::adam ? &at::_ops::_fused_adam_::call : &at::_ops::_fused_adamw_::call;
  update(parameters, gradients, averages, square_averages, {}, steps, options_.learning_rate,
         options_.beta1, options_.beta2, options_.weight_decay, options_.epsilon,
         /*amsgrad=*/false, /*maximize=*/false, {}, {});
}

void Optimizer::start(Slot& slot) const {
  const at::Tensor& parameter = slot.parameter.tensor;
  for (const std::string_view kind : state_kinds_) {
    slot.state.push_back(kind == "step" ? at::zeros({}, parameter.options().dtype(step_type))
                                        : at::zeros_like(parameter));
  }
}

std::string Optimizer::state_name(std::size_t which, const Slot& slot) const {
  return "optimizer." + std::string(state_kinds_[which]) + "." + slot.parameter.name;
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (const Slot& slot : slots_) {
    for (std::size_t i = 0; i < slot.state.size(); ++i) {
      all.push_back({state_name(i, slot), slot.state[i]});
    }
  }
  return all;
}

void Optimizer::load(const std::map<std::string, at::Tensor>& state) {
  const at::NoGradGuard no_grad;
  for (Slot& slot : slots_) load_slot(slot, state);
}

void Optimizer::load_slot(Slot& slot, const std::map<std::string, at::Tensor>& state) const {
  Slot loaded{slot.parameter, {}};
  start(loaded);
  std::size_t found = 0;
  for (std::size_t i = 0; i < loaded.state.size(); ++i) {
    const std::string name = state_name(i, slot);
    const auto entry = state.find(name);
    if (entry != state.end()) {
      require(entry->second.sizes() == loaded.state[i].sizes(),
              name + " has shape " + to_string(entry->second.sizes().vec()) + ", not " +
                  to_string(loaded.state[i].sizes().vec()));
      loaded.state[i].copy_(entry->second);
      ++found;
    }
  }
  require(found == 0 || found == loaded.state.size(),
          "the optimizer state of " + slot.parameter.name + " is incomplete");
  slot.state = found == 0 ? std::vector<at::Tensor>{} : std::move(loaded.state);
}

}  // namespace stratagem::models
