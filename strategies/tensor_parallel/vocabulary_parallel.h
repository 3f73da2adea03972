// Embedding and cross-entropy over a vocabulary that is sharded over ranks (Shoeybi et al.
// 2019, section 3): rank r has the entries [r V / ranks, (r + 1) V / ranks).
#pragma once

#include "models/transformer.h"
#include "strategies/tensor_parallel/parallel_layer.h"
#include "strategies/tensor_parallel/tensor_group.h"

namespace stratagem::tensor_parallel {

/// Token ids [n, sequence] -> [n, sequence, features], or this rank's part of the sequence. Tokens
/// of other ranks count as zero here and come with the sum.
class VocabParallelEmbedding : public models::Layer, public ParallelLayer {
 public:
  /// `token` are this rank's rows; `position` is [longest sequence, features], whole.
  VocabParallelEmbedding(std::string name, at::Tensor token, at::Tensor position,
                         TensorGroup& group, Layout layout);
  at::Tensor forward(const at::Tensor& input) override;
  models::Shape output_shape(const models::Shape& input) const override;
  Communication communication(const LayerInput& work) const override;

 private:
  at::Tensor token_;
  at::Tensor position_;
  TensorGroup& group_;
  Layout layout_;
};

/// The mean cross-entropy, times `weight`, of `logits` [n, sequence, V / ranks] against token ids
/// [n, sequence]. Three numbers a position are sent, never the logits: their maximum, the sum of
/// their exponentials and the target's own logit. Returns a scalar, the same on every rank.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        double weight, TensorGroup& group);

/// models::correct_predictions of the same. Collective.
at::Tensor vocab_parallel_correct_predictions(const at::Tensor& logits, const at::Tensor& targets,
                                              TensorGroup& group);

/// What the loss of so many positions exchanges.
Communication cross_entropy_communication(std::int64_t positions, std::int64_t element_bytes);

}  // namespace stratagem::tensor_parallel
