#include "models/gpt.h"

#include <cmath>
#include <memory>
#include <string>

#include "models/basic_layers.h"
#include "models/transformer.h"

namespace stratagem::models {
namespace {

constexpr double kDeviation = 0.02;
constexpr std::int64_t kHiddenPerFeature = 4;

class Maker {
 public:
  Maker(const GptSize& size, const ModelOptions& options)
      : features_(size.heads * scaled_width(size.features / size.heads, options.width)),
        heads_(size.heads),
        dropout_(options.dropout),
        residual_deviation_(kDeviation / std::sqrt(2.0 * static_cast<double>(size.blocks))) {}

  std::int64_t features() const { return features_; }

  std::unique_ptr<Layer> block(const std::string& name) const {
    const std::int64_t hidden = kHiddenPerFeature * features_;
    TransformerBlock::Parts parts;
    parts.norm1 = std::make_unique<LayerNormLayer>(name + ".norm1", features_);
    parts.qkv = linear(name + ".attention.qkv", features_, 3 * features_);
    parts.projection =
        linear(name + ".attention.projection", features_, features_, residual_deviation_);
    parts.norm2 = std::make_unique<LayerNormLayer>(name + ".norm2", features_);
    parts.up = linear(name + ".mlp.up", features_, hidden);
    parts.down = linear(name + ".mlp.down", hidden, features_, residual_deviation_);
    parts.heads = heads_;
    parts.dropout = dropout_;
    return std::make_unique<TransformerBlock>(name, std::move(parts));
  }

 private:
  static std::unique_ptr<Layer> linear(const std::string& name, std::int64_t in, std::int64_t out,
                                       double deviation = kDeviation) {
    return std::make_unique<LinearLayer>(name, in, out, InitialValues::normal(deviation),
                                         InitialValues::constant(0));
  }

  std::int64_t features_;
  std::int64_t heads_;
  double dropout_;
  double residual_deviation_;
};

Model make_gpt(const std::string& name, const GptSize& size, const ModelOptions& options) {
  const Maker maker(size, options);
  const std::int64_t vocabulary = class_count(options, size.vocabulary);
  const std::int64_t d = maker.features();
  Model model{name, {}};
  const InitialValues initial = InitialValues::normal(kDeviation);
  model.layers.push_back(std::make_unique<TokenEmbeddingLayer>(
      "embedding",
      TokenEmbeddingOptions{.vocabulary = vocabulary,
                            .longest_sequence = size.longest_sequence,
                            .features = d,
                            .dropout = options.dropout},
      initial));
  for (std::int64_t index = 0; index < size.blocks; ++index) {
    model.layers.push_back(maker.block("blocks." + std::to_string(index)));
  }
  model.layers.push_back(std::make_unique<LayerNormLayer>("norm", d));
  model.layers.push_back(
      std::make_unique<LinearLayer>("head", d, vocabulary, initial, std::nullopt));
  return model;
}

}  // namespace

ModelEntry gpt_entry(const std::string& name, const std::string& summary, const GptSize& size) {
  return {
      .name = name,
      .summary = summary,
      .input_kind = InputKind::tokens,
      .classes = size.vocabulary,
      .make = [name, size](const ModelOptions& options) { return make_gpt(name, size, options); },
      .default_cut = {"blocks." + std::to_string((size.blocks + 1) / 2)},
      .layers = size.blocks + 3,
      .longest_sequence = size.longest_sequence,
      .default_sequence = size.default_sequence,
      .sharded_sizes = {{"heads", size.heads}, {"vocabulary", size.vocabulary}},
      .family = "gpt",
      .has_dropout = true};
}

}  // namespace stratagem::models
