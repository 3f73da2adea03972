#include "models/llama.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "models/basic_layers.h"
#include "models/cpu_kernels/attention.h"
#include "models/model.h"
#include "models/transformer.h"

namespace stratagem::models {
namespace {

constexpr double deviation = 0.02;  // of initial values

class LlamaMaker {
 public:
  LlamaMaker(const LlamaSize& size, const ModelOptions& options)
      : size_(size),
        head_features_(2 * scaled_width(size.features / size.heads.count() / 2, options.width)),
        features_(size.heads.count() * head_features_),
        hidden_(scaled_width(size.hidden, options.width)),
        residual_deviation_(deviation / std::sqrt(2.0 * static_cast<double>(size.blocks))) {}

  std::int64_t features() const { return features_; }

  std::unique_ptr<Layer> block(const std::string& name) const {
    const std::int64_t wide = (size_.heads.count() + 2 * size_.heads.groups) * head_features_;
    LlamaBlock::Parts parts;
    parts.norm1 = std::make_unique<RmsNormLayer>(name + ".norm1", features_);
    parts.qkv = linear(name + ".attention.qkv", features_, wide);
    parts.projection =
        linear(name + ".attention.projection", features_, features_, residual_deviation_);
    parts.norm2 = std::make_unique<RmsNormLayer>(name + ".norm2", features_);
    parts.gate_up = linear(name + ".mlp.gate_up", features_, 2 * hidden_);
    parts.down = linear(name + ".mlp.down", hidden_, features_, residual_deviation_);
    parts.heads = size_.heads;
    parts.rotary_base = size_.rotary_base;
    return std::make_unique<LlamaBlock>(name, std::move(parts));
  }

  std::unique_ptr<Layer> linear(const std::string& name, std::int64_t in, std::int64_t out,
                                double of_values = deviation) const {
    return std::make_unique<LinearLayer>(name, in, out, InitialValues::normal(of_values),
                                         std::nullopt);
  }

 private:
  LlamaSize size_;
  std::int64_t head_features_;
  std::int64_t features_;
  std::int64_t hidden_;
  double residual_deviation_;
};

Model make_llama(const std::string& name, const LlamaSize& size, const ModelOptions& options) {
  const LlamaMaker maker(size, options);
  const std::int64_t vocabulary = class_count(options, size.vocabulary);
  Model model{name, {}};
  model.layers.push_back(std::make_unique<TokenEmbeddingLayer>(
      "embedding",
      TokenEmbeddingOptions{vocabulary, size.longest_sequence, maker.features(),
                            /*has_positions=*/false},
      InitialValues::normal(deviation)));
  for (std::int64_t index = 0; index < size.blocks; ++index) {
    model.layers.push_back(maker.block("blocks." + std::to_string(index)));
  }
  model.layers.push_back(std::make_unique<RmsNormLayer>("norm", maker.features()));
  model.layers.push_back(maker.linear("head", maker.features(), vocabulary));
  return model;
}

}  // namespace

RmsNormLayer::RmsNormLayer(std::string name, std::int64_t features) : Layer(std::move(name)) {
  weight_ = register_parameter("weight", {features}, InitialValues::constant(1));
}

at::Tensor RmsNormLayer::forward(const at::Tensor& input) {
  return models::rms_norm(input, weight_);
}

Shape RmsNormLayer::output_shape(const Shape& input) const {
  if (input.empty() || input.back() != weight_.size(0)) {
    throw std::invalid_argument("layer " + name() + " takes [..., " +
                                std::to_string(weight_.size(0)) + "], not " + to_string(input));
  }
  return input;
}

LlamaBlock::LlamaBlock(std::string name, Parts parts)
    : Layer(std::move(name)), parts_(std::move(parts)) {
  for (const auto* part : {&parts_.norm1, &parts_.qkv, &parts_.projection, &parts_.norm2,
                           &parts_.gate_up, &parts_.down}) {
    adopt(**part);
  }
}

at::Tensor LlamaBlock::forward(const at::Tensor& input) {
  return output(input, function_of(*parts_.down));
}

at::Tensor LlamaBlock::recompute(const at::Tensor& input) {
  return output(input, unread_function_of(*parts_.down));
}

at::Tensor LlamaBlock::output(const at::Tensor& input, const TensorFunction& down) {
  const auto [groups, queries] = parts_.heads;
  const at::Tensor wide = remade(*parts_.qkv, function_of(*parts_.norm1), input);
  const Rotation& angles = rotation(wide, wide.size(2) / (groups * (queries + 2)));
  const auto attention = [this](const at::Tensor& qkv) {
    return attention_over(part_, qkv, parts_.heads);
  };
  const at::Tensor spread = spread_heads(wide, angles, parts_.heads);
  const at::Tensor middle = input + remade(*parts_.projection, attention, spread);
  const at::Tensor gate_up = remade(*parts_.gate_up, function_of(*parts_.norm2), middle);
  return middle + on_remade_input(down, gated_silu, gate_up);
}

/// The angles of 16-bit formats are float32.
const Rotation& LlamaBlock::rotation(const at::Tensor& wide, std::int64_t head_features) {
  const std::int64_t sequence = wide.size(1);
  const at::ScalarType type = at::toOpMathType(wide.scalar_type());
  const at::Tensor& known = rotation_.cosine;
  if (known.defined() && known.size(0) == sequence && known.scalar_type() == type) {
    return rotation_;
  }
  const at::TensorOptions options = wide.options().dtype(at::kDouble).requires_grad(false);
  const at::Tensor exponents =
      at::arange(0, head_features, 2, options) / static_cast<double>(head_features);
  const at::Tensor angles = at::outer(positions_of(part_, sequence, options),
                                      at::pow(parts_.rotary_base, exponents.neg()))
                                .view({sequence, 1, 1, head_features / 2});
  rotation_ = {.cosine = angles.cos().to(type).contiguous(),
               .sine = angles.sin().to(type).contiguous()};
  return rotation_;
}

Shape LlamaBlock::output_shape(const Shape& input) const {
  if (input.size() != 3) {
    throw std::invalid_argument("layer " + name() + " takes [n, sequence, features], not " +
                                to_string(input));
  }
  return parts_.norm1->output_shape(input);
}

LayerFlops LlamaBlock::flops(const Shape& input) const {
  output_shape(input);
  const auto [groups, queries] = parts_.heads;
  const Shape wide = parts_.qkv->output_shape(input);
  const Shape mixed = {wide[0], wide[1], wide[2] / (queries + 2) * queries};
  const Shape gated = parts_.gate_up->output_shape(input);
  const LayerFlops down = parts_.down->flops({gated[0], gated[1], gated[2] / 2});
  LayerFlops all;
  all += parts_.qkv->flops(input);
  all += parts_.projection->flops(mixed);
  all += parts_.gate_up->flops(input);
  all += down;
  all += attention_flops(mixed);
  all.unread = down.forward;
  return all;
}

AttentionSize LlamaBlock::attention_size() const {
  // The first parameter is a normalisation's weight.
  return {.heads = parts_.heads, .features = parameters().front().tensor.size(0)};
}

ModelEntry llama_entry(const std::string& name, const std::string& summary, const LlamaSize& size) {
  return {
      .name = name,
      .summary = summary,
      .input_kind = InputKind::tokens,
      .classes = size.vocabulary,
      .make = [name, size](const ModelOptions& options) { return make_llama(name, size, options); },
      .default_cut = {"blocks." + std::to_string((size.blocks + 1) / 2)},
      .layers = size.blocks + 3,
      .longest_sequence = size.longest_sequence,
      .sharded_sizes = {{.what = "key and value heads",
                         .size = size.heads.groups,
                         .copies_up_to = size.heads.count()},
                        {.what = "vocabulary", .size = size.vocabulary}},
      .family = "llama"};
}

}  // namespace stratagem::models
