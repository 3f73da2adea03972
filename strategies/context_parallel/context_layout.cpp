#include "strategies/context_parallel/context_layout.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "strategies/backends/backend.h"
#include "strategies/tensor_parallel/share.h"

namespace stratagem::context_parallel {
namespace {

/// The dimension of positions in tokens [n, positions] and activations [n, positions, features].
constexpr std::int64_t position_dimension = 1;

at::Tensor indices_of(const std::vector<Run>& runs) {
  std::vector<at::Tensor> parts;
  for (const auto& [start, count, stride] : runs) {
    parts.push_back(at::arange(start, start + count * stride, stride, at::kLong));
  }
  return at::cat(parts);
}

}  // namespace

ContextLayout::ContextLayout(const models::Workload& workload,
                             const std::vector<std::size_t>& boundaries,
                             distributed::ProcessGroup& group, runtime::Device& device,
                             const strategies::StrategyOptions& options,
                             const distributed::ProcessGroup* tensor)
    : group_(group, device,
             {.overlap = options.async_reduce,
              .keep_gathered = options.keep_gathered,
              .reduce_scatter = options.reduce_scatter}),
      device_(device),
      form_(form_of(options)),
      order_(order_of(options)),
      positions_(
          indices_of(positions_of(order_, group.size(), group.rank(), workload.sequence_length()))),
      tensor_(tensor) {
  const models::Model model = workload.make_meta_model();
  std::vector<models::AttentionSize> of_stage;
  for (std::size_t layer = 0, stage = 0; layer < model.layers.size(); ++layer) {
    if (stage < boundaries.size() && layer == boundaries[stage]) {
      attentions_.push_back(std::exchange(of_stage, {}));
      ++stage;
    }
    const models::AttentionSize size = model.layers[layer]->attention_size();
    if (size.heads.count() > 0) of_stage.push_back(size);
  }
  attentions_.push_back(of_stage);
}

void ContextLayout::place(const models::LayerList& layers) {
  const auto attention = [this](const at::Tensor& qkv, const models::GroupedHeads& heads) {
    return form_.attention(qkv, heads, {group_, order_});
  };
  const at::Tensor positions = positions_.to(backends::torch_device(device_.description()));
  for (const auto& layer : layers) {
    layer->take_part({.positions = positions, .attention = attention});
  }
}

models::Batch ContextLayout::own_part(models::Batch whole) const {
  for (at::Tensor* tensor : {&whole.inputs, &whole.targets}) {
    *tensor = tensor->index_select(position_dimension, positions_);
  }
  return whole;
}

models::Shape ContextLayout::boundary(models::Shape whole) const {
  if (whole.size() == 3) whole[position_dimension] /= group_.size();
  return whole;
}

double ContextLayout::imbalance() const {
  if (form_.shares_heads) return 1;
  const std::int64_t length = own_positions() * group_.size();
  std::int64_t most = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    most = std::max(most, visible_pairs(order_, group_.size(), rank, length));
  }
  const double all = 0.5 * static_cast<double>(length) * static_cast<double>(length + 1);
  return static_cast<double>(most) * group_.size() / all;
}

strategies::CommunicationCounts ContextLayout::communication(int stage,
                                                             const AttentionWork& work) const {
  strategies::CommunicationCounts calls;
  for (const auto& [all_heads, features] : attentions_.at(static_cast<std::size_t>(stage))) {
    const models::GroupedHeads heads =
        tensor_ == nullptr ? all_heads
                           : tensor_parallel::share_of(all_heads, tensor_->rank(), tensor_->size());
    const std::int64_t of_head = features / all_heads.count();
    const std::int64_t outputs = work.samples * own_positions() * heads.count() * of_head;
    AttentionPass pass{.output_bytes = outputs * work.element_bytes,
                       .gradient_bytes = outputs * work.sum_bytes,
                       .heads = heads,
                       .ranks = group_.size(),
                       .keep_gathered = group_.options().keep_gathered};
    for (int forward = 0; forward < (work.remade ? 2 : 1); ++forward) add(calls, form_.calls(pass));
    pass.is_backward = true;
    if (work.has_backward) add(calls, form_.calls(pass));
  }
  return calls;
}

}  // namespace stratagem::context_parallel
