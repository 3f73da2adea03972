#include "models/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>

#include <stdexcept>
#include <utility>

#include "models/cpu_kernels/attention.h"
#include "models/cpu_kernels/dropout.h"
#include "models/cpu_kernels/functions.h"
#include "models/cpu_kernels/linear.h"

namespace stratagem::models {

TokenEmbeddingLayer::TokenEmbeddingLayer(std::string name, const TokenEmbeddingOptions& options,
                                         const InitialValues& initial)
    : Layer(std::move(name)),
      longest_sequence_(options.longest_sequence),
      dropout_(options.dropout) {
  token_ = register_parameter("token.weight", {options.vocabulary, options.features}, initial);
  if (!options.has_positions) return;
  position_ =
      register_parameter("position.weight", {options.longest_sequence, options.features}, initial);
}

at::Tensor TokenEmbeddingLayer::forward(const at::Tensor& input) {
  at::Tensor sum = models::embedding(token_, input);
  if (position_.defined()) {
    sum.add_(models::embedding(position_, positions_of(part_, input.size(1), input.options())));
  }
  return placed_dropout(sum, training() ? dropout_ : 0, name());
}

Shape TokenEmbeddingLayer::output_shape(const Shape& input) const {
  if (input.size() != 2 || input[1] > longest_sequence_) {
    throw std::invalid_argument("layer " + name() + " takes tokens [n, sequence up to " +
                                std::to_string(longest_sequence_) + "], not " + to_string(input));
  }
  return {input[0], input[1], token_.size(1)};
}

at::Tensor positions_of(const SequencePart& part, std::int64_t length,
                        const at::TensorOptions& like) {
  return part.positions.defined() ? part.positions.to(like) : at::arange(length, like);
}

at::Tensor attention_over(const SequencePart& part, const at::Tensor& qkv,
                          const GroupedHeads& heads) {
  return part.attention ? part.attention(qkv, heads) : causal_attention(qkv, heads.count());
}

LayerNormLayer::LayerNormLayer(std::string name, std::int64_t features) : Layer(std::move(name)) {
  weight_ = register_parameter("weight", {features}, InitialValues::constant(1));
  bias_ = register_parameter("bias", {features}, InitialValues::constant(0));
}

at::Tensor LayerNormLayer::forward(const at::Tensor& input) {
  return models::layer_norm(input, weight_, bias_);
}

Shape LayerNormLayer::output_shape(const Shape& input) const {
  if (input.empty() || input.back() != weight_.size(0)) {
    throw std::invalid_argument("layer " + name() + " takes [..., " +
                                std::to_string(weight_.size(0)) + "], not " + to_string(input));
  }
  return input;
}

TransformerBlock::TransformerBlock(std::string name, Parts parts)
    : Layer(std::move(name)), parts_(std::move(parts)) {
  for (const auto* part :
       {&parts_.norm1, &parts_.qkv, &parts_.projection, &parts_.norm2, &parts_.up, &parts_.down}) {
    adopt(**part);
  }
}

at::Tensor TransformerBlock::forward(const at::Tensor& input) {
  return output(input, function_of(*parts_.down));
}

at::Tensor TransformerBlock::recompute(const at::Tensor& input) {
  return output(input, unread_function_of(*parts_.down));
}

at::Tensor TransformerBlock::output(const at::Tensor& input, const TensorFunction& down) const {
  const auto attention = [this](const at::Tensor& qkv) {
    return attention_over(part_, qkv, {.groups = parts_.heads});
  };
  const auto gelu = [](const at::Tensor& x) { return at::gelu(x); };
  const at::Tensor qkv = remade(*parts_.qkv, function_of(*parts_.norm1), input);
  const at::Tensor middle =
      input + dropped(remade(*parts_.projection, attention, qkv), *parts_.projection);
  const at::Tensor hidden = remade(*parts_.up, function_of(*parts_.norm2), middle);
  return middle + dropped(on_remade_input(down, gelu, hidden), *parts_.down);
}

at::Tensor TransformerBlock::dropped(const at::Tensor& x, const Layer& part) const {
  return placed_dropout(x, training() ? parts_.dropout : 0, part.name());
}

TensorFunction function_of(Layer& layer) {
  return [&layer](const at::Tensor& x) { return layer.forward(x); };
}

TensorFunction unread_function_of(Layer& layer) {
  return [&layer](const at::Tensor& x) {
    const UnreadProductGuard guard;
    return layer.forward(x);
  };
}

at::Tensor remade(Layer& layer, const TensorFunction& make, const at::Tensor& from) {
  return on_remade_input(function_of(layer), make, from);
}

Shape TransformerBlock::output_shape(const Shape& input) const {
  if (input.size() != 3) {
    throw std::invalid_argument("layer " + name() + " takes [n, sequence, features], not " +
                                to_string(input));
  }
  return parts_.norm1->output_shape(input);
}

LayerFlops TransformerBlock::flops(const Shape& input) const {
  output_shape(input);
  const Shape wide = parts_.qkv->output_shape(input);
  const Shape mixed = {wide[0], wide[1], wide[2] / 3};
  const Shape hidden = parts_.up->output_shape(input);
  const LayerFlops down = parts_.down->flops(hidden);
  LayerFlops all;
  all += parts_.qkv->flops(input);
  all += parts_.projection->flops(mixed);
  all += parts_.up->flops(input);
  all += down;
  all += attention_flops(mixed);
  all.unread = down.forward;
  return all;
}

AttentionSize TransformerBlock::attention_size() const {
  // The first parameter is a normalisation's weight.
  return {.heads = {.groups = parts_.heads}, .features = parameters().front().tensor.size(0)};
}

LayerFlops attention_flops(const Shape& mixed) {
  const double scores = 2.0 * static_cast<double>(mixed[0]) * static_cast<double>(mixed[1]) *
                        static_cast<double>(mixed[1]) * static_cast<double>(mixed[2]);
  return {2 * scores, 4 * scores, 0, 2 * scores};
}

}  // namespace stratagem::models
