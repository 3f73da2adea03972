// Llama: a decoder of blocks with root-mean-square normalisation, rotary positions, grouped-query
// attention and a gated MLP, without biases (Touvron et al. 2023, "LLaMA: Open and Efficient
// Foundation Language Models"; Grattafiori et al. 2024, "The Llama 3 Herd of Models"). Layers:
// embedding, blocks.0, ..., norm, head; the head is untied. Activations are [n, sequence,
// features].
#pragma once

#include "models/cpu_kernels/remade_inputs.h"
#include "models/cpu_kernels/row_functions.h"
#include "models/layer.h"
#include "models/registry/registry.h"

namespace stratagem::models {

/// Divides the last dimension by its root mean square, epsilon 1e-5, and scales it (Zhang and
/// Sennrich 2019, "Root Mean Square Layer Normalization").
class RmsNormLayer : public Layer {
 public:
  RmsNormLayer(std::string name, std::int64_t features);
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;

 private:
  at::Tensor weight_;
};

/// Computes x + projection(attention(rotated qkv(norm1(x)))), then x + down(silu(g) * u) with
/// [g, u] = gate_up(norm2(x)). Attention is causal. `qkv` gives, for each group, its query heads,
/// its key head and its value head, so that a run of rows is whole groups. Queries and keys of
/// position t are rotated by t / base^(2i / d), each feature i of a head of d features with feature
/// i + d / 2 (Su et al. 2021, "RoFormer", in the order of Hugging Face's Llama).
class LlamaBlock : public Layer {
 public:
  struct Parts {
    std::unique_ptr<Layer> norm1;
    std::unique_ptr<Layer> qkv;
    std::unique_ptr<Layer> projection;
    std::unique_ptr<Layer> norm2;
    std::unique_ptr<Layer> gate_up;
    std::unique_ptr<Layer> down;
    GroupedHeads heads;
    double rotary_base = 10'000;
  };

  LlamaBlock(std::string name, Parts parts);
  at::Tensor forward(const at::Tensor& input) override;
  /// Omits the product of `down`.
  at::Tensor recompute(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  /// Counts attention as TransformerBlock does.
  LayerFlops flops(const Shape& input) const override;
  void take_part(const SequencePart& part) override { part_ = part; }
  AttentionSize attention_size() const override;

  /// Moves the parts out of the block.
  Parts take_parts() && { return std::move(parts_); }

 private:
  at::Tensor output(const at::Tensor& input, const TensorFunction& down);
  const Rotation& rotation(const at::Tensor& wide, std::int64_t head_features);

  Parts parts_;
  SequencePart part_;
  Rotation rotation_;  // the last sequence's
};

struct LlamaSize {
  std::int64_t features = 0;
  std::int64_t blocks = 0;
  GroupedHeads heads = {};
  std::int64_t hidden = 0;  // features of the MLP
  std::int64_t longest_sequence = 0;
  std::int64_t vocabulary = 0;
  double rotary_base = 10'000;
};

/// Width multiplies the features of a head, an even number, and those of the MLP. Initial values
/// are those of gpt_entry().
ModelEntry llama_entry(const std::string& name, const std::string& summary, const LlamaSize& size);

}  // namespace stratagem::models
