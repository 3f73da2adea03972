// A model's layers as a step calls them: each by itself, a batch normalisation with the ReLU and
// the sum that it is fused with (models/cpu_kernels/batch_norm.h). What a layer is given in a step
// follows from its shape, so each unit can be run alone.
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
  std::vector<models::Layer*> layers;  // whose tensors it uses; part of the model
  models::Shape input;
  models::Shape output;
  bool first = false;  // its input is the batch: nobody asks for its gradient
  bool adds = false;   // takes a second input, of the output's shape
  /// A convolution or a linear layer: sums of products, and as well conditioned as those are.
  bool is_product = false;
  double flops = 0;  // forward and backward

  using Function = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& addend)>;
  Function forward;
  /// What the ReLU at its end is given; empty without one.
  Function before_relu;

  std::vector<models::NamedTensor> parameters() const;
  std::vector<models::NamedTensor> buffers() const;
};

/// Those of a whole model, whose batch has the shape `input`, in the order of their calls.
std::vector<LayerUnit> layer_units(models::LayerSpan layers, const models::Shape& input);

/// The first ones of those that differ in their place and their values alone.
std::vector<std::size_t> distinct(const std::vector<LayerUnit>& units);

/// Rectified units that lie within a rounding of zero let their gradient pass in one computation
/// and not in the other. Returns which share of a gradient's norm a few such units may have; 0
/// where less than a hundredth of a unit is expected there. `rounding` is relative to a value's
/// size.
double undecided_share(models::LayerSpan layers, const models::Shape& input, double rounding);

/// How many terms the model's sums have, one behind the other: what an element of each parameter's
/// product is the sum of.
std::int64_t summed_terms(const std::vector<models::NamedTensor>& parameters);

}  // namespace stratagem::bench
