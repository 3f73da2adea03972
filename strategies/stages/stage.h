// Stage: a run of layers on one device, with autograd of its own.
//
// A stage's input is a detached leaf; its backward is called with the gradient that arrived. So a
// stage never knows what stands before or behind it, in this process or another.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "models/cpu_kernels/deferred_weight_gradients.h"
#include "models/workload.h"
#include "strategies/costs.h"
#include "strategies/runtime/device.h"

namespace stratagem::stages {

class Stage {
 public:
  struct Position {
    bool first = true;
    bool last = true;
  };

  /// Moves the layers to the device, where those without memory get their initial values.
  /// `workload` outlives the stage.
  Stage(const models::Workload& workload, models::LayerList layers, Position position,
        runtime::DeviceDescription device, int micro_batches);

  // What each action does; on the device's thread. `weight` is the micro-batch's share of the
  // global batch.
  void load_input(int micro_batch, const at::Tensor& inputs, const at::Tensor& targets);
  void receive_activation(int micro_batch, const at::Tensor& previous_output);
  void receive_gradient(int micro_batch, const at::Tensor& next_input_gradient);
  /// The same with a tensor that lies on this device already, and that nobody writes to.
  void set_input(int micro_batch, at::Tensor input) { slot(micro_batch).input = std::move(input); }
  void set_targets(int micro_batch, at::Tensor targets) {
    slot(micro_batch).targets = std::move(targets);
  }
  void set_output_gradient(int micro_batch, at::Tensor output_gradient) {
    slot(micro_batch).output_gradient = std::move(output_gradient);
  }
  void forward(int micro_batch, double weight);
  /// Of a stage whose `split_backward` is set, the first half; backward_weight() is the second.
  void backward(int micro_batch);
  void backward_weight(int micro_batch);
  /// With clipping (OptimizerOptions::clip_norm): the sum of the squares of the gradients'
  /// elements, [] (float64); of `counted` where it is set.
  at::Tensor squared_gradient_norm() const;
  void update();
  /// With gradients divided by the loss scale and clipped first, `squared_norm` being that of the
  /// whole model once they are divided. Where it is not
  /// finite the parameters stay as they are, and so do the gradients: what later passes add to them
  /// is not finite either, and no later step changes the parameters.
  void update(double squared_norm, double loss_scale = 1);
  /// The next forward pass begins with no gradients, as it does after update().
  void drop_gradients() { gradients_are_old_ = true; }
  /// Returns true if the next forward pass of a training drops the gradients.
  bool gradients_are_old() const { return gradients_are_old_; }

  /// What the next stage receives; released by backward().
  const at::Tensor& output(int micro_batch) const { return slot(micro_batch).output; }
  /// What the previous stage receives; kept until it has been taken.
  at::Tensor take_input_gradient(int micro_batch);
  /// The weighted loss of a micro-batch, on the last stage.
  at::Tensor take_loss(int micro_batch);
  /// Likewise its correct predictions, of a forward pass without gradients; may be undefined.
  at::Tensor take_correct(int micro_batch);

  /// Takes so many micro-batches from now on, if it took fewer.
  void make_room(std::size_t micro_batches) {
    if (slots_.size() < micro_batches) slots_.resize(micro_batches);
  }
  /// Forgets every micro-batch, inputs that were kept too: before and after an evaluation.
  void release();
  void set_training(bool training) { models::set_training(layers_, training); }
  /// The parameters of which this rank counts the norm, where it is not all: an element that
  /// several ranks hold is counted by one of them.
  std::optional<std::vector<at::Tensor>> counted = {};
  bool keep_inputs = false;  // inputs stay on the device once they were loaded
  bool split_backward = false;
  /// The last stage's loss of outputs, targets and weight; the workload's where it is empty.
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&, double)> loss = {};
  /// Likewise the correct predictions.
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> correct = {};

  const models::LayerList& layers() const { return layers_; }
  const runtime::DeviceDescription& device() const { return device_; }
  /// What its parameters, their gradients and the optimizer's state take, by their number and type.
  strategies::StateBytes state_bytes() const;
  models::Optimizer& optimizer() { return optimizer_; }
  /// From now on these are updated, clipped and counted in the norm, in place of the layers'
  /// parameters, whose values and gradients are the caller's to keep.
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
  void retag_gradients() const;

  const models::Workload* workload_;
  models::LayerList layers_;
  std::vector<at::Tensor> parameters_;
  Position position_;
  runtime::DeviceDescription device_;
  models::Optimizer optimizer_;
  std::vector<Slot> slots_;
  bool gradients_are_old_ = true;
};

}  // namespace stratagem::stages
