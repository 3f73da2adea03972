// ContextLayout: one rank's view of stages whose activations are a part of each sample's positions
// (context parallelism). Layers are whole. Attention exchanges with the ranks that have the other
// positions; every other layer works on single positions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/workload.h"
#include "strategies/context_parallel/attention_form.h"
#include "strategies/layer_exchange/exchange_group.h"

namespace stratagem::context_parallel {

/// One micro-batch of a stage's layers.
struct AttentionWork {
  std::int64_t samples = 0;
  std::int64_t element_bytes = 0;
  std::int64_t sum_bytes = 0;  // of an element of summed gradients
  bool has_backward = true;    // false: only the forward pass is repeated
  bool remade = false;         // the backward pass makes attention's outputs again
};

class ContextLayout {
 public:
  /// Takes the workload's model, cut before each of `boundaries`, ascending, into stages.
  /// The ranks of `tensor` share each layer's heads; null: layers are whole. All but `options` must
  /// outlive it.
  ContextLayout(const models::Workload& workload, const std::vector<std::size_t>& boundaries,
                distributed::ProcessGroup& group, runtime::Device& device,
                const strategies::StrategyOptions& options,
                const distributed::ProcessGroup* tensor);

  /// Restricts the layers to this rank's positions.
  void place(const models::LayerList& layers);

  /// Returns a batch's tokens at this rank's positions.
  models::Batch own_part(models::Batch whole) const;
  std::int64_t own_positions() const { return positions_.size(0); }
  /// Returns the own positions, ascending.
  std::span<const std::int64_t> positions() const {
    return {positions_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(own_positions())};
  }
  /// Returns whether this rank has a sequence's first position.
  bool is_first() const { return group_.rank() == 0; }
  /// Returns the shape between two stages on this rank, from that on a single device.
  models::Shape boundary(models::Shape whole) const;
  /// Returns the most pairs of a query and a key that it sees on a rank, over the mean of the
  /// ranks.
  double imbalance() const;
  /// Returns this rank's part of a loss that is a mean over positions.
  double share() const { return 1.0 / group_.size(); }

  /// Returns the calls of one micro-batch through a stage, by formula from the whole model.
  strategies::CommunicationCounts communication(int stage, const AttentionWork& work) const;

  std::vector<layer_exchange::LayerCollective> take_collectives() {
    return group_.take_collectives();
  }

 private:
  layer_exchange::ExchangeGroup group_;
  runtime::Device& device_;
  const AttentionForm& form_;
  ContextOrder order_;
  at::Tensor positions_;  // [own] (int64), on the host
  const distributed::ProcessGroup* tensor_;
  std::vector<std::vector<models::AttentionSize>> attentions_;  // [stage]
};

}  // namespace stratagem::context_parallel
