// Stage: a run of layers on one device with its own autograd graph.
//
// A stage's input is a detached leaf; its backward is called with the gradient that arrived. So a
// stage does not depend on its neighbours, in this process or another.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/cpu_kernels/remade_inputs.h"
#include "models/gradient_clipping.h"
#include "models/workload.h"
#include "strategies/costs.h"
#include "strategies/options.h"
#include "strategies/runtime/device.h"

namespace stratagem::stages {

/// Returns what the stages of such a row leave to their backward passes.
models::RemadeInputs remade_by(const strategies::StrategyOptions& options);

class Stage {
 public:
  struct Position {
    bool first = true;
    bool last = true;
  };

  /// Moves the layers to the device, where those without memory get their initial values.
  /// `workload` must outlive the stage.
  Stage(const models::Workload& workload, models::LayerList layers, Position position,
        runtime::DeviceDescription device, int micro_batches);

  // The functions of the actions, on the device's thread. `weight` is the micro-batch's share of
  // the global batch.
  void load_input(int micro_batch, const at::Tensor& inputs, const at::Tensor& targets);
  void receive_activation(int micro_batch, const at::Tensor& previous_output);
  void receive_gradient(int micro_batch, const at::Tensor& next_input_gradient);
  /// Sets a tensor that is already on this device and that nobody writes to.
  void set_input(int micro_batch, at::Tensor input) { slot(micro_batch).input = std::move(input); }
  void set_targets(int micro_batch, at::Tensor targets) {
    slot(micro_batch).targets = std::move(targets);
  }
  void set_output_gradient(int micro_batch, at::Tensor output_gradient) {
    slot(micro_batch).output_gradient = std::move(output_gradient);
  }
  /// The activations for a backward pass are kept, unless `keeps` is false: then the input is, and
  /// recompute() makes them again.
  void forward(int micro_batch, double weight, bool keeps = true);
  /// Repeats the forward pass from the kept input. Buffers, such as the running statistics of
  /// BatchNorm, keep their values. Except on the last stage, output() loses its values: the next
  /// stage has had them (models::recompute()).
  void recompute(int micro_batch, double weight);
  /// If `split_backward` is set, backward() is the first half and backward_weight() the second.
  void backward(int micro_batch);
  void backward_weight(int micro_batch);
  /// Returns, for clipping (OptimizerOptions::clip_norm), the sum of the squares of the gradients'
  /// elements, [] (float64); only of `counted` if it is set.
  at::Tensor squared_gradient_norm() const;
  void update();
  /// Divides gradients by the loss scale, clips them and updates; `squared_norm` is that of the
  /// whole model's divided gradients. If it is not finite, parameters and gradients stay unchanged:
  /// later passes' additions are not finite either, and no later step changes the parameters.
  void update(double squared_norm, double loss_scale = 1);
  /// Makes the next forward pass drop the gradients, as after update().
  void drop_gradients() { gradients_are_old_ = true; }
  /// Returns whether the next forward pass of a training drops the gradients.
  bool gradients_are_old() const { return gradients_are_old_; }

  /// Returns the next stage's input; backward() releases it.
  const at::Tensor& output(int micro_batch) const { return slot(micro_batch).output; }
  /// Returns the gradient for the previous stage, which is kept until this call.
  at::Tensor take_input_gradient(int micro_batch);
  /// Returns the weighted loss of a micro-batch, on the last stage.
  at::Tensor take_loss(int micro_batch);
  /// Returns its correct predictions in a pass without gradients; may be undefined.
  at::Tensor take_correct(int micro_batch);

  /// Makes room for at least `micro_batches` micro-batches.
  void make_room(std::size_t micro_batches) {
    if (slots_.size() < micro_batches) slots_.resize(micro_batches);
  }
  /// Forgets every micro-batch and kept input: before and after an evaluation.
  void release();
  void set_training(bool training) { models::set_training(layers_, training); }
  /// The gradients that this rank counts in the norm, if not all: one of the ranks that hold an
  /// element counts it.
  std::optional<std::vector<models::CountedGradient>> counted = {};
  bool keep_inputs = false;  // inputs stay on the device after loading
  bool split_backward = false;
  models::RemadeInputs remade_inputs = models::RemadeInputs::never;
  /// The last stage's loss of outputs, targets and weight; empty: the workload's.
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&, double)> loss = {};
  /// The correct predictions of outputs and targets; empty: the workload's.
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> correct = {};

  const models::LayerList& layers() const { return layers_; }
  const runtime::DeviceDescription& device() const { return device_; }
  /// Returns the bytes of parameters, gradients and optimizer state, by their number and type.
  strategies::StateBytes state_bytes() const;
  models::Optimizer& optimizer() { return optimizer_; }
  /// Updates, clips and counts these in the norm from now on, instead of the layers' parameters,
  /// whose values and gradients the caller then keeps.
  void train(const std::vector<models::NamedTensor>& instead);

 private:
  /// One micro-batch in flight.
  struct Slot {
    at::Tensor input;
    at::Tensor targets;
    at::Tensor output;
    at::Tensor loss;
    at::Tensor correct;
    at::Tensor output_gradient;
    at::Tensor input_gradient;
    models::DeferredWeightGradientsPointer weight_gradients;
  };
  Slot& slot(int micro_batch) { return slots_.at(static_cast<std::size_t>(micro_batch)); }
  const Slot& slot(int micro_batch) const {
    return slots_.at(static_cast<std::size_t>(micro_batch));
  }
  using Pass = at::Tensor (*)(models::LayerSpan, const at::Tensor&);
  void compute_output(Slot& own, Pass pass);
  void compute_loss(Slot& own, double weight) const;
  void retag_gradients() const;

  const models::Workload* workload_;
  models::LayerList layers_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
  Position position_;
  runtime::DeviceDescription device_;
  models::Optimizer optimizer_;
  std::vector<Slot> slots_;
  bool gradients_are_old_ = true;
};

}  // namespace stratagem::stages
