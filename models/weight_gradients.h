// Backward in two halves: I, the gradient of the input, which the stage before waits for, and W,
// the gradients of the weights, which can wait for a bubble (Qi, Wan, Huang, Lin 2023, "Zero Bubble
// Pipeline Parallelism", section 2).
//
// While a WeightGradients collects, the functions of models/functions.h record one autograd node
// each that computes the input gradient when autograd reaches it and leaves the rest here, with the
// tensors that it needs. W then computes what was left: autograd's graph is traversed once, and no
// parameter has a gradient of the micro-batch before.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>
#include <utility>
#include <vector>

namespace stratagem::models {

class WeightGradients : public torch::CustomClassHolder {
 public:
  // `compute` returns the gradient of `parameter`, a leaf, or undefined where it has added it
  // itself. On the thread of the backward pass.
  void leave(at::Tensor parameter, std::function<at::Tensor()> compute);

  // Computes what was left and accumulates it as autograd does, hooks included; then nothing is
  // left.
  void run();

  std::size_t size() const { return left_.size(); }

 private:
  std::vector<std::pair<at::Tensor, std::function<at::Tensor()>>> left_;
};

using WeightGradientsPointer = c10::intrusive_ptr<WeightGradients>;

// What forward passes on this thread give their weight gradients to; null where backward passes
// compute them at once.
const WeightGradientsPointer& weight_gradients_in_force();

class CollectWeightGradients {
 public:
  explicit CollectWeightGradients(WeightGradientsPointer collector);
  ~CollectWeightGradients();
  CollectWeightGradients(const CollectWeightGradients&) = delete;
  CollectWeightGradients& operator=(const CollectWeightGradients&) = delete;

 private:
  WeightGradientsPointer previous_;
};

}  // namespace stratagem::models
