// Layer: one cuttable piece of a model.
//
// A model is a plain list of layers, so that a partition can put any run of them on any device.
// Layers call ATen functions directly (autograd records those), which keeps compile times short and
// lets us choose the kernels. Names are torchvision's, so that state dictionaries are exchangeable
// with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cpu_kernels/row_functions.h"
#include "models/initial_values.h"

namespace stratagem::models {

/// The sizes of a tensor, batch first: [n, channels, height, width] or [n, features].
using Shape = std::vector<std::int64_t>;

/// Returns the sizes as "[4, 3, 64, 64]".
std::string to_string(const Shape& shape);

/// The tensor is a handle shared with the layer that uses it: change its content (copy_, set_data),
/// never the handle.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The floating-point operations of one call: 2 per multiply-add of convolutions and matrix
/// products. Normalisation, activation and pooling are memory traffic and count as zero.
struct LayerFlops {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double remade = 0;  // the forward operations that selective recomputation repeats
  double unread = 0;  // the forward operations that Layer::recompute() omits

  /// Adds a part's operations, but not its `unread`: the whole layer decides what it omits.
  LayerFlops& operator+=(const LayerFlops& part);
};

/// The positions of a sequence that one of several ranks has, and attention over all of them.
struct SequencePart {
  /// Takes queries, keys and values of the own positions, [n, own, 3 features] as in
  /// causal_attention(), in which the query heads of a group have equal keys and values. Returns
  /// [n, own, features].
  using Attention = std::function<at::Tensor(const at::Tensor& qkv, const GroupedHeads& heads)>;

  at::Tensor positions;  // [own] (int64)
  Attention attention;
};

/// The outputs of a layer's attention; zeros for a layer without.
struct AttentionSize {
  GroupedHeads heads = {.groups = 0};
  std::int64_t features = 0;  // of all heads
};

/// A layer is made on LibTorch's meta device: its tensors have names, sizes and a type, but no
/// memory and no values until materialise().
class Layer {
 public:
  /// `name` is the prefix of the layer's tensors: "conv1", "layer1.0", "fc".
  explicit Layer(std::string name) : name_(std::move(name)) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual at::Tensor forward(const at::Tensor& input) = 0;

  /// Repeats a forward pass for its backward pass. The result has the graph of forward()'s, but may
  /// have other values, because nobody reads them.
  virtual at::Tensor recompute(const at::Tensor& input) { return forward(input); }

  /// Throws std::invalid_argument, in one line, if the input does not fit.
  virtual Shape output_shape(const Shape& input) const = 0;

  /// Returns zeros unless a layer has products to count. Throws like output_shape().
  virtual LayerFlops flops(const Shape& input) const;

  /// Restricts inputs and outputs to a part of the positions. A layer whose results depend on
  /// positions, or on other positions, must override it.
  virtual void take_part(const SequencePart& /*part*/) {}
  virtual AttentionSize attention_size() const { return {}; }

  const std::string& name() const { return name_; }

  /// Returns tensors with full names ("layer1.0.bn1.weight") in torchvision's order.
  std::vector<NamedTensor>& parameters() { return parameters_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  /// Returns running_mean, running_var and num_batches_tracked of every normalisation.
  std::vector<NamedTensor>& buffers() { return buffers_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }

  virtual void set_training(bool training) { training_ = training; }
  bool training() const { return training_; }

  /// Gives every tensor without memory its memory and initial values, one after the other,
  /// converted like to(). The handles stay valid.
  void materialise(std::uint64_t seed, const at::Device& device, at::ScalarType dtype,
                   at::MemoryFormat format);

  /// Converts in place: the handles stay valid, parameters stay leaves that require a gradient,
  /// gradients are dropped. Integer buffers keep their dtype; `format` applies to 4-d tensors.
  /// Tensors without memory stay without it.
  void to(const at::Device& device, at::ScalarType dtype, at::MemoryFormat format);

 protected:
  /// Registers `suffix` "weight" as "<layer>.weight".
  at::Tensor register_parameter(std::string_view suffix, const Shape& sizes,
                                const InitialValues& initial);
  /// Registers existing values, for a layer made of parts of another.
  at::Tensor register_parameter(std::string_view suffix, at::Tensor tensor);
  at::Tensor register_buffer(std::string_view suffix, const Shape& sizes,
                             const InitialValues& initial, at::ScalarType dtype = at::kFloat);

  /// Lists the tensors of a layer that is part of this one.
  void adopt(const Layer& part);

 private:
  struct Unfilled {
    NamedTensor of;
    InitialValues initial;
  };

  /// Returns a tensor on the meta device, which materialise() fills.
  NamedTensor without_memory(std::string_view suffix, const Shape& sizes,
                             const InitialValues& initial, at::ScalarType dtype);

  std::string name_;
  bool training_ = true;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<Unfilled> unfilled_;
};

using LayerList = std::vector<std::unique_ptr<Layer>>;

}  // namespace stratagem::models
