// The layers of a decoder-only transformer (Vaswani et al. 2017; normalisation before each part, as
// in Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"). Activations are
// [n, sequence, features].
#pragma once

#include "models/cpu_kernels/remade_inputs.h"
#include "models/layer.h"

namespace stratagem::models {

struct TokenEmbeddingOptions {
  std::int64_t vocabulary = 0;
  std::int64_t longest_sequence = 0;
  std::int64_t features = 0;
  bool has_positions = true;  // adds a row for each position
  double dropout = 0;         // the rate, for the sum
};

/// Maps token ids [n, sequence] (int64) to token row, plus position row if positions have rows:
/// [n, sequence, features].
class TokenEmbeddingLayer : public Layer {
 public:
  TokenEmbeddingLayer(std::string name, const TokenEmbeddingOptions& options,
                      const InitialValues& initial);
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  void take_part(const SequencePart& part) override { part_ = part; }

  const at::Tensor& token() const { return token_; }
  /// Undefined without positions.
  const at::Tensor& position() const { return position_; }
  std::int64_t longest_sequence() const { return longest_sequence_; }
  double dropout() const { return dropout_; }

 private:
  std::int64_t longest_sequence_;
  double dropout_;
  at::Tensor token_;
  at::Tensor position_;
  SequencePart part_;
};

/// Returns the positions of a sequence of `length` with the options of `like`: those of the part,
/// or all.
at::Tensor positions_of(const SequencePart& part, std::int64_t length,
                        const at::TensorOptions& like);

/// Computes causal attention over all positions, also where `part` has only some of them.
at::Tensor attention_over(const SequencePart& part, const at::Tensor& qkv,
                          const GroupedHeads& heads);

/// Normalises the last dimension, then scales and shifts it.
class LayerNormLayer : public Layer {
 public:
  LayerNormLayer(std::string name, std::int64_t features);
  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

TensorFunction function_of(Layer& layer);

/// Returns a function that calls the layer under an UnreadProductGuard.
TensorFunction unread_function_of(Layer& layer);

/// Calls the layer on make(from), which selective recomputation does not keep.
at::Tensor remade(Layer& layer, const TensorFunction& make, const at::Tensor& from);

/// Returns the operations of attention with outputs [n, sequence, features of all heads]: two
/// products over the whole square of positions, as is usual. The mask saves a kernel work, but not
/// the model.
LayerFlops attention_flops(const Shape& mixed);

/// Computes x + dropout(projection(attention(qkv(norm1(x))))), then x + dropout(down(gelu(up(
/// norm2(x))))). Attention is causal. `qkv` gives query, key and value in a row, each of `heads`
/// heads.
class TransformerBlock : public Layer {
 public:
  struct Parts {
    std::unique_ptr<Layer> norm1;
    std::unique_ptr<Layer> qkv;
    std::unique_ptr<Layer> projection;
    std::unique_ptr<Layer> norm2;
    std::unique_ptr<Layer> up;
    std::unique_ptr<Layer> down;
    std::int64_t heads = 1;
    double dropout = 0;  // the rate
  };

  TransformerBlock(std::string name, Parts parts);
  at::Tensor forward(const at::Tensor& input) override;
  /// Omits the product of `down`.
  at::Tensor recompute(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  /// Counts attention by attention_flops().
  LayerFlops flops(const Shape& input) const override;
  void take_part(const SequencePart& part) override { part_ = part; }
  AttentionSize attention_size() const override;

  /// Moves the parts out of the block.
  Parts take_parts() && { return std::move(parts_); }
  std::int64_t heads() const { return parts_.heads; }

 private:
  at::Tensor output(const at::Tensor& input, const TensorFunction& down) const;
  at::Tensor dropped(const at::Tensor& x, const Layer& part) const;

  Parts parts_;
  SequencePart part_;
};

}  // namespace stratagem::models
