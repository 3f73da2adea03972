// Optimizers with the update rules of torch.optim, one fused call for all parameters
// (but see fused_sgd_works in optimizer.cpp).
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
  double momentum = 0;  // of sgd
  double weight_decay = 0;
  double beta1 = 0.9;  // of adam and adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double clip_norm = 0;  // gradients are clipped to this global 2-norm first; 0: they are not
};

/// Bytes of what an optimizer accumulates for a parameter, from its first step on.
std::int64_t state_bytes(const OptimizerOptions& options, const at::Tensor& parameter);

class Optimizer {
 public:
  /// Updates the tensors behind these handles, which must stay on one device.
  /// Throws std::invalid_argument for an option out of range.
  Optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options);

  /// Drops every gradient, so that the next backward pass stores instead of adding.
  void zero_grad();

  /// Parameters without a gradient are left alone. A gradient laid out otherwise than its parameter
  /// costs a copy. Returns the state that begins with this step: tensors of the optimizer's own, of
  /// parameters that have their first one.
  std::vector<at::Tensor> step();

  /// What has accumulated: "optimizer.momentum_buffer.<parameter>" for sgd with momentum,
  /// "optimizer.exp_avg.", "optimizer.exp_avg_sq." and "optimizer.step." for adam and adamw.
  /// Nothing before a parameter's first step. The tensors are the optimizer's own.
  std::vector<NamedTensor> state() const;

  /// Takes copies of the entries that state() would name, from among any others; a parameter with
  /// none starts afresh. Throws std::invalid_argument when a parameter has only some of its
  /// entries, or one of another shape.
  void load(const std::map<std::string, at::Tensor>& state);

  const OptimizerOptions& options() const { return options_; }
  /// Of the steps to come.
  void set_learning_rate(double rate) { options_.learning_rate = rate; }

 private:
  /// One parameter and its moments; undefined until its first step.
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
