#include "strategies/context_parallel/context_layout.h"

#include <ATen/ATen.h>

#include <utility>

#include "strategies/context_parallel/heads_attention.h"

namespace stratagem::context_parallel {
namespace {

/// The dimension of positions in tokens [n, positions] and activations [n, positions, features].
constexpr std::int64_t position_dimension = 1;

}  // namespace

ContextLayout::ContextLayout(const models::Workload& workload,
                             const std::vector<std::size_t>& boundaries,
                             distributed::ProcessGroup& group, runtime::Device& device,
                             int tensor_ranks)
    : group_(group, device, {}), tensor_ranks_(tensor_ranks) {
  const std::int64_t own = workload.sequence_length() / group_.size();
  positions_ = at::arange(group_.rank() * own, (group_.rank() + 1) * own, at::kLong);
  const models::Model model = workload.make_meta_model();
  std::vector<models::AttentionSize> of_stage;
  for (std::size_t layer = 0, stage = 0; layer < model.layers.size(); ++layer) {
    if (stage < boundaries.size() && layer == boundaries[stage]) {
      attentions_.push_back(std::exchange(of_stage, {}));
      ++stage;
    }
    const models::AttentionSize size = model.layers[layer]->attention_size();
    if (size.heads > 0) of_stage.push_back(size);
  }
  attentions_.push_back(of_stage);
}

void ContextLayout::place(const models::LayerList& layers) {
  const models::SequencePart part{.positions = positions_,
                                  .attention = [this](const at::Tensor& qkv, std::int64_t heads) {
                                    return heads_attention(qkv, heads, group_);
                                  }};
  for (const auto& layer : layers) layer->take_part(part);
}

models::Batch ContextLayout::own_part(models::Batch whole) const {
  for (at::Tensor* tensor : {&whole.inputs, &whole.targets}) {
    *tensor = tensor->narrow(position_dimension, first_position(), own_positions());
  }
  return whole;
}

models::Shape ContextLayout::boundary(models::Shape whole) const {
  if (whole.size() == 3) whole[position_dimension] /= group_.size();
  return whole;
}

strategies::CommunicationCounts ContextLayout::communication(int stage,
                                                             const AttentionWork& work) const {
  strategies::CommunicationCounts calls;
  const auto add = [&calls](std::int64_t bytes) {
    calls["all_to_all"] += {.calls = 1, .payload_bytes = bytes};
  };
  for (const auto& [heads, features] : attentions_.at(static_cast<std::size_t>(stage))) {
    const std::int64_t outputs =
        work.samples * own_positions() * (features / tensor_ranks_) * work.element_bytes;
    const int forward_passes = work.remade ? 2 : 1;
    for (int pass = 0; pass < forward_passes; ++pass) {
      add(3 * outputs);
      add(outputs);
    }
    if (!work.has_backward) continue;
    add(outputs);
    add(3 * outputs);
  }
  return calls;
}

}  // namespace stratagem::context_parallel
