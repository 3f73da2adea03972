// TensorLayout: one rank's view of stages whose layers are sharded over ranks. From the whole model
// it decides a rank's part of each layer. It makes the layers, computes the loss of sharded logits,
// and translates between a state of slices and a whole one.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "models/gradient_clipping.h"
#include "models/workload.h"
#include "strategies/state.h"
#include "strategies/tensor_parallel/shard.h"

namespace stratagem::tensor_parallel {

class TensorLayout {
 public:
  /// Takes the workload's model, cut before each of `boundaries`, ascending, into stages on
  /// `device_of_stage`. `workload`, `group` and `device` must outlive it.
  TensorLayout(const models::Workload& workload, const std::vector<std::size_t>& boundaries,
               const std::vector<int>& device_of_stage, distributed::ProcessGroup& group,
               runtime::Device& device, Layout layout,
               const layer_exchange::ExchangeOptions& options);

  /// Returns this rank's layers of a stage, see tensor_parallel::shard().
  models::LayerList shard(models::LayerList whole);

  /// Returns Workload::loss of the last stage's outputs. A language model's logits stay sharded.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets, double weight);

  /// Returns Workload::correct; collective if logits are sharded.
  at::Tensor correct(const at::Tensor& output, const at::Tensor& targets);

  /// Returns the shape between two stages on this rank, from that on a single device.
  models::Shape boundary(models::Shape whole) const;

  /// Returns the first of the positions of the activations on this rank, of `positions` on all.
  std::int64_t first_position(std::int64_t positions) const;

  /// gather() returns the whole entries, collectively, and slices() this rank's slices. Gradients
  /// and the optimizer's entries are sharded like their parameter.
  strategies::StateDictionary gather(const strategies::StateDictionary& slices,
                                     const at::Device& device);
  /// Returns pieces of this rank's slices as pieces of the whole entries, and, on the first rank,
  /// of entries that every rank has whole.
  strategies::StatePieces pieces_of_whole(strategies::StatePieces slices) const;
  strategies::StateDictionary slices(const strategies::StateDictionary& whole) const;

  /// Returns a stage's parameters whose gradients lack what other ranks add: with Layout::sequence
  /// those that are whole on every rank, because each covers only its own positions; and those with
  /// a part that several ranks have, because each covers only its own heads.
  const std::vector<at::Tensor>& partial(int stage, const models::LayerList& layers);
  /// Replaces these gradients of a stage by the sums over the ranks, in `format`. Collective; one
  /// call.
  void reduce_gradients(int stage, const std::vector<at::Tensor>& gradients, at::ScalarType format);

  /// Returns the elements of gradients that this rank counts in a norm: its slices, except what an
  /// earlier rank has too, and on the first rank those that every rank has whole.
  std::vector<models::CountedGradient> counted(const models::LayerList& layers) const;

  /// Returns the calls of one micro-batch through a stage, by the whole model's layers.
  Communication communication(int stage, const LayerInput& work) const;
  /// Returns the calls of reduce_gradients in a format of `element_bytes`.
  Communication reduction(const models::LayerList& layers, std::int64_t element_bytes) const;

  /// Returns whether this rank counts values that all ranks have; only the first does.
  bool counts() const { return group_.rank() == 0; }

  std::vector<layer_exchange::LayerCollective> take_collectives() {
    return group_.take_collectives();
  }

 private:
  struct Partial {
    std::vector<at::Tensor> parameters = {};
    std::vector<CommonPart> common = {};  // [parameter]: what is summed, if not all of it
  };
  Partial partial(const models::LayerList& layers) const;
  CommonPart common_part_of(const std::string& parameter) const;
  const ShardSpec* shard_spec_of(const std::string& entry) const;
  bool keeps_logits_sharded() const;

  const models::Workload& workload_;
  layer_exchange::ExchangeGroup group_;
  Layout layout_;
  LinearRoles roles_;
  std::vector<std::vector<Exchange>> exchanges_;  // [stage]
  std::mutex mutex_;                              // the devices' threads make stages
  std::map<int, Partial> partial_;                // [stage]
  ShardedParameters sharded_;
  std::map<std::string, models::Shape> whole_sizes_;  // by parameter
};

}  // namespace stratagem::tensor_parallel
