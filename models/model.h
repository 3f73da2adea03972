// Model: a named list of layers, and functions for any run of them: tensors, floating-point
// operations and cuts.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer.h"

namespace stratagem::models {

struct Model {
  std::string name;
  LayerList layers;
};

using LayerSpan = std::span<const std::unique_ptr<Layer>>;

/// The floating-point operations of one forward and one backward pass.
struct PassFlops {
  double forward = 0;
  double backward = 0;
  double remade = 0;  // see LayerFlops
  double unread = 0;  // the last layer's, see LayerFlops

  double total() const { return forward + backward; }
  /// Returns the operations of a repeated forward pass.
  double repeated(bool output_is_read) const { return output_is_read ? forward : forward - unread; }
};

/// Calls the layers in order; a batch normalisation and the ReLU behind it run as one
/// (batch_norm.h).
at::Tensor forward(LayerSpan layers, const at::Tensor& input);

/// Repeats a forward pass for its backward pass (Layer::recompute()). Only the last layer's output
/// may have other values.
at::Tensor recompute(LayerSpan layers, const at::Tensor& input);

/// Return the handles of all the layers' tensors, in order.
std::vector<NamedTensor> parameters(LayerSpan layers);
std::vector<NamedTensor> buffers(LayerSpan layers);

void set_training(LayerSpan layers, bool training);

/// Throws std::invalid_argument, in one line, if the input does not fit some layer.
Shape output_shape(LayerSpan layers, const Shape& input);

/// `first_input_needs_gradient` is false for a model's first layer: the data needs no gradient.
PassFlops flops(LayerSpan layers, const Shape& input, bool first_input_needs_gradient);

/// Returns whether `layer` is `name` or lies in it: "layer3.0" lies in "layer3".
bool lies_in(std::string_view layer, std::string_view name);

/// Returns the index of the first layer that is `name` or lies in it: "layer3" finds layer3.0.
/// Throws std::invalid_argument with the model's possible cuts.
std::size_t find_layer(const LayerList& layers, std::string_view name);

/// Splits the list before each boundary: boundaries {a, b} give [0, a), [a, b), [b, size).
/// Throws std::invalid_argument unless 0 < a < b < ... < size.
std::vector<LayerList> cut(LayerList&& layers, std::span<const std::size_t> boundaries);

}  // namespace stratagem::models
