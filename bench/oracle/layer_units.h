// Splits a model into units that a step calls: single layers, and a batch normalisation with the
// ReLU and the sum that it is fused with (models/cpu_kernels/batch_norm.h). A layer's input in a
// step follows from its shape, so each unit can be run by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/model.h"

namespace stratagem::bench {

struct LayerUnit {
  std::string name;                    // "layer1.0.conv1", "layer1.0.bn1 + relu"
  std::vector<models::Layer*> layers;  // owners of its tensors; part of the model
  models::Shape input;
  models::Shape output;
  bool first = false;  // its input is the batch, which needs no gradient
  bool adds = false;   // takes a second input, of the output's shape
  /// True for a convolution or a linear layer: sums of products, and as well conditioned.
  bool is_product = false;
  double flops = 0;  // forward and backward

  using Function = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& addend)>;
  Function forward;
  /// Returns the input of the ReLU at its end; empty without one.
  Function before_relu;

  std::vector<models::NamedTensor> parameters() const;
  std::vector<models::NamedTensor> buffers() const;
};

/// Returns the units of a whole model, whose batch has the shape `input`, in calling order.
std::vector<LayerUnit> layer_units(models::LayerSpan layers, const models::Shape& input);

/// Returns the first of each set of units that differ only in place and values.
std::vector<std::size_t> distinct(const std::vector<LayerUnit>& units);

/// Returns which share of a gradient's norm a few rectified units within a rounding of zero may
/// have: they let their gradient pass in one computation and not in the other. Returns 0 if less
/// than a hundredth of a unit is expected there. `rounding` is relative to a value's size.
double undecided_share(models::LayerSpan layers, const models::Shape& input, double rounding);

/// Returns how many terms the model's sums have, one after the other: the terms of an element of
/// each parameter's product.
std::int64_t summed_terms(const std::vector<models::NamedTensor>& parameters);

}  // namespace stratagem::bench
