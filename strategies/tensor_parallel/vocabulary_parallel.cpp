#include "strategies/tensor_parallel/vocabulary_parallel.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "models/cpu_kernels/functions.h"
#include "strategies/tensor_parallel/mappings.h"
#include "strategies/tensor_parallel/share.h"

namespace stratagem::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Ids counted from this rank's first entry, with a mask of the other ranks' ids.
struct OwnIds {
  at::Tensor ids;     // 0 for another rank's
  at::Tensor theirs;  // bool
};

OwnIds own_ids(const at::Tensor& ids, std::int64_t first, std::int64_t entries) {
  const at::Tensor shifted = ids - first;
  const at::Tensor theirs = shifted.lt(0).logical_or(shifted.ge(entries));
  return {shifted.masked_fill(theirs, 0), theirs};
}

/// The derivative is softmax - one-hot, of which every rank has its own columns.
class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& targets, double weight, std::int64_t first,
                            at::ScalarType dtype, layer_exchange::ExchangeGroup* group) {
    const at::Tensor rows = logits.flatten(0, -2);
    const std::int64_t positions = rows.size(0);
    const at::Tensor largest =
        group->all_reduce(rows.amax(1).to(dtype), distributed::Reduction::maximum).wait();
    const OwnIds own = own_ids(targets.flatten(), first, rows.size(1));
    const at::Tensor shifted = rows.scalar_type() == dtype
                                   ? rows - largest.unsqueeze(1)
                                   : rows.to(dtype).sub_(largest.unsqueeze(1));
    const at::Tensor of_target =
        shifted.gather(1, own.ids.unsqueeze(1)).squeeze(1).masked_fill(own.theirs, 0);
    const at::Tensor exponentials = shifted.exp_();
    const at::Tensor sums = group->all_reduce(at::stack({exponentials.sum(1), of_target})).wait();
    context->save_for_backward({exponentials, sums[0], own.ids, own.theirs});
    context->saved_data["scale"] = weight / static_cast<double>(positions);
    context->saved_data["sizes"] = logits.sizes().vec();
    context->saved_data["format"] = logits.scalar_type();
    return (sums[0].log() - sums[1]).mean().mul(weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor gradient = saved[0] / saved[1].unsqueeze(1);
    const at::Tensor ones = saved[3].logical_not().to(gradient.scalar_type()).unsqueeze(1);
    gradient.scatter_add_(1, saved[2].unsqueeze(1), ones.neg());
    gradient.mul_(gradients[0] * context->saved_data.at("scale").toDouble());
    gradient = gradient.to(context->saved_data.at("format").toScalarType());
    return {gradient.view(context->saved_data.at("sizes").toIntVector()), {}, {}, {}, {}, {}};
  }
};

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(std::string name, at::Tensor token,
                                               at::Tensor position,
                                               const models::TokenEmbeddingOptions& whole,
                                               layer_exchange::ExchangeGroup& group, Layout layout)
    : Layer(std::move(name)),
      longest_sequence_(whole.longest_sequence),
      dropout_(whole.dropout),
      first_(share_of(whole.vocabulary, group.rank(), group.size()).first),
      group_(group),
      layout_(layout) {
  token_ = register_parameter("token.weight", std::move(token));
  if (whole.has_positions) position_ = register_parameter("position.weight", std::move(position));
}

at::Tensor VocabParallelEmbedding::forward(const at::Tensor& input) {
  const OwnIds own = own_ids(input, first_, token_.size(0));
  const at::Tensor partial_sum =
      models::embedding(token_, own.ids).masked_fill(own.theirs.unsqueeze(2), 0);
  const bool by_sequence = layout_ == Layout::sequence;
  const at::Tensor sum = by_sequence ? scatter_to_ranks(partial_sum, group_, sequence_dimension)
                                     : reduce_from_ranks(partial_sum, group_);
  const double rate = training() ? dropout_ : 0;
  if (!position_.defined()) return models::placed_dropout(sum, rate, name());
  at::Tensor positions = models::positions_of(part_, input.size(1), input.options());
  if (by_sequence) positions = group_.own_part(positions, 0);
  return models::placed_dropout(sum + models::embedding(position_, positions), rate, name());
}

models::Shape VocabParallelEmbedding::output_shape(const models::Shape& input) const {
  const std::int64_t share = layout_ == Layout::sequence ? group_.size() : 1;
  if (input.size() != 2 || input[1] > longest_sequence_ || input[1] % share != 0) {
    throw std::invalid_argument("layer " + name() + " takes tokens [n, sequence up to " +
                                std::to_string(longest_sequence_) + "], not " +
                                models::to_string(input));
  }
  return {input[0], input[1] / share, token_.size(1)};
}

at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        double weight, std::int64_t vocabulary,
                                        at::ScalarType dtype,
                                        layer_exchange::ExchangeGroup& group) {
  const std::int64_t first = share_of(vocabulary, group.rank(), group.size()).first;
  return CrossEntropy::apply(logits, targets, weight, first, dtype, &group);
}

at::Tensor vocab_parallel_correct_predictions(const at::Tensor& logits, const at::Tensor& targets,
                                              std::int64_t vocabulary,
                                              layer_exchange::ExchangeGroup& group) {
  const auto [own, index] = logits.max(-1);
  const at::Tensor largest = group.all_reduce(own.clone(), distributed::Reduction::maximum).wait();
  // The first of equal logits counts, as in argmax. float64 holds every index exactly.
  const at::Tensor id =
      (index + share_of(vocabulary, group.rank(), group.size()).first).to(at::kDouble);
  const at::Tensor candidate =
      id.neg().masked_fill(own.ne(largest), -std::numeric_limits<double>::infinity());
  const at::Tensor first = group.all_reduce(candidate, distributed::Reduction::maximum).wait();
  return first.neg().eq(targets).sum();
}

}  // namespace stratagem::tensor_parallel
