// Model: a named list of layers, and what can be asked of any run of them: the tensors, the
// floating-point operations, where it can be cut.
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

/// Floating-point operations of one forward and one backward pass.
struct PassFlops {
  double forward = 0;
  double backward = 0;

  double total() const { return forward + backward; }
};

/// The layers one after the other; a batch normalisation and the ReLU behind it run as one
/// (batch_norm.h).
at::Tensor forward(LayerSpan layers, const at::Tensor& input);

/// The handles of all the layers' tensors, in order.
std::vector<NamedTensor> parameters(LayerSpan layers);
std::vector<NamedTensor> buffers(LayerSpan layers);

void set_training(LayerSpan layers, bool training);

/// Throws std::invalid_argument, in one line, when the input does not fit some layer.
Shape output_shape(LayerSpan layers, const Shape& input);

/// `first_input_needs_gradient` is false where the first layer is the model's first: nobody asks
/// for the gradient of the data.
PassFlops flops(LayerSpan layers, const Shape& input, bool first_input_needs_gradient);

/// Index of the first layer that is `name` or lies in it: "layer3" finds layer3.0.
/// Throws std::invalid_argument that lists where the model can be cut.
std::size_t find_layer(const LayerList& layers, std::string_view name);

/// Splits the list before each boundary: boundaries {a, b} give [0, a), [a, b), [b, size).
/// Throws std::invalid_argument unless 0 < a < b < ... < size.
std::vector<LayerList> cut(LayerList&& layers, std::span<const std::size_t> boundaries);

}  // namespace stratagem::models
