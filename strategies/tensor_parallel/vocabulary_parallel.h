// Embedding and cross-entropy over a vocabulary that is sharded over ranks (Shoeybi et al. 2019,
// section 3), each with its share_of() the entries. Megatron pads the vocabulary until the number
// of ranks divides it; here, as in DTensor, some ranks have one entry fewer.
#pragma once

#include "models/transformer.h"
#include "strategies/layer_exchange/exchange_group.h"
#include "strategies/tensor_parallel/layout.h"

namespace stratagem::tensor_parallel {

/// Maps token ids [n, sequence] -> [n, sequence, features], or this rank's part of the sequence.
/// Tokens of other ranks are zero here and come with the sum.
class VocabParallelEmbedding : public models::Layer {
 public:
  /// `token` has this rank's rows of the vocabulary of `whole`; `position` is [longest sequence,
  /// features], whole, and undefined without positions.
  VocabParallelEmbedding(std::string name, at::Tensor token, at::Tensor position,
                         const models::TokenEmbeddingOptions& whole,
                         layer_exchange::ExchangeGroup& group, Layout layout);
  at::Tensor forward(const at::Tensor& input) override;
  models::Shape output_shape(const models::Shape& input) const override;
  void take_part(const models::SequencePart& part) override { part_ = part; }

 private:
  at::Tensor token_;
  at::Tensor position_;
  std::int64_t longest_sequence_;
  double dropout_;
  std::int64_t first_;  // this rank's first entry
  layer_exchange::ExchangeGroup& group_;
  Layout layout_;
  models::SequencePart part_;
};

/// Returns the mean cross-entropy, times `weight`, of `logits` [n, sequence, a rank's share of the
/// vocabulary] and token ids [n, sequence], computed in `dtype`: a scalar, the same on every rank.
/// It sends three numbers a position, never the logits: their maximum, the sum of their
/// exponentials and the target's own logit.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        double weight, std::int64_t vocabulary,
                                        at::ScalarType dtype, layer_exchange::ExchangeGroup& group);

/// Returns models::correct_predictions of the same. Collective.
at::Tensor vocab_parallel_correct_predictions(const at::Tensor& logits, const at::Tensor& targets,
                                              std::int64_t vocabulary,
                                              layer_exchange::ExchangeGroup& group);

}  // namespace stratagem::tensor_parallel
