// Optimizers with the update rules of torch.optim, one fused call for all parameters (but see
// fused_sgd_works in optimizer.cpp).
//
// SGD (momentum m, weight decay d): g += d p; buffer = g at first, then m buffer + g; p -= lr
// buffer. Adam (Kingma, Ba, 2014) adds d p to the gradient, AdamW (Loshchilov, Hutter, 2017)
// shrinks p by lr d instead; both correct the bias of their moments. No dampening, no Nesterov.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer.h"

namespace stratagem::models {

struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };

  Kind kind = Kind::sgd;
  double learning_rate = 0.001;
  double momentum = 0;  // for sgd
  double weight_decay = 0;
  double beta1 = 0.9;  // for adam and adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;  // the global 2-norm to which gradients are clipped; 0: no clipping
};

/// Returns the bytes that an optimizer accumulates for a parameter, from its first step on.
std::int64_t state_bytes(const OptimizerOptions& options, const at::Tensor& parameter);

class Optimizer {
 public:
  /// Updates the tensors behind these handles, which must stay on one device. Throws
  /// std::invalid_argument for an option out of range.
  Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options);

  /// Drops every gradient, so that the next backward pass stores instead of adding.
  void zero_grad();

  /// Skips parameters without a gradient. A gradient in another layout than its parameter costs a
  /// copy. Returns the new state of parameters that have their first step: the optimizer's own
  /// tensors.
  std::vector<at::Tensor> step();

  /// Returns "optimizer.momentum_buffer.<parameter>" for sgd with momentum, and
  /// "optimizer.exp_avg.", "optimizer.exp_avg_sq." and "optimizer.step." for adam and adamw. A
  /// parameter has none before its first step. The tensors are the optimizer's own.
  std::vector<NamedTensor> state() const;

  /// Copies the entries of state() from `state`, which may have others; a parameter without entries
  /// starts afresh. Throws std::invalid_argument if a parameter has only some of its entries, or
  /// one of another shape.
  void load(const std::map<std::string, at::Tensor>& state);

  const OptimizerOptions& options() const { return options_; }
  /// Sets the rate of later steps.
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 private:
  /// One parameter and its moments, which are undefined until its first step.
  struct Slot {
    NamedTensor parameter;
    std::vector<at::Tensor> state;
  };

  void step_sgd(const std::vector<Slot*>& slots, bool first);
  void step_adam(const std::vector<Slot*>& slots);
  void count_the_write();
  void start(Slot& slot) const;
  void load_slot(Slot& slot, const std::map<std::string, at::Tensor>& state) const;
  std::string state_name(std::size_t which, const Slot& slot) const;

  OptimizerOptions options_;
  std::vector<std::string_view> state_kinds_;
  std::vector<Slot> slots_;
};

}  // namespace stratagem::models
