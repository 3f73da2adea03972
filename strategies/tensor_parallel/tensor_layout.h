// TensorLayout: one rank's view of stages whose layers are sharded over ranks. It decides from the
// whole model what a rank has of each layer, makes the layers, computes the loss of sharded logits,
// and translates between a state of slices and a whole one.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "models/workload.h"
#include "strategies/state.h"
#include "strategies/tensor_parallel/shard.h"

namespace stratagem::tensor_parallel {

class TensorLayout {
 public:
  /// Of the workload's model, cut before each of `boundaries`, ascending, into stages, which lie on
  /// `device_of_stage`. `workload`, `group` and `device` outlive it.
  TensorLayout(const models::Workload& workload, const std::vector<std::size_t>& boundaries,
               const std::vector<int>& device_of_stage, distributed::ProcessGroup& group,
               runtime::Device& device, Layout layout, const ExchangeOptions& options);

  /// This rank's layers of a stage, as tensor_parallel::shard() makes them.
  models::LayerList shard(models::LayerList whole);

  /// As Workload::loss, of the last stage's outputs. Logits of a language model stay sharded.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& targets, double weight);

  /// As Workload::correct; collective where logits are sharded.
  at::Tensor correct(const at::Tensor& output, const at::Tensor& targets);

  /// What lies between two stages on this rank, from its shape on a single device.
  models::Shape boundary(models::Shape whole) const;

  /// Collective: the whole of every entry, and of every entry this rank's slice. Gradients and the
  /// optimizer's entries are sharded as their parameter is.
  strategies::StateDictionary gather(const strategies::StateDictionary& slices,
                                     const at::Device& device);
  /// Pieces of this rank's slices as pieces of the whole entries, and of what is whole on every
  /// rank those of the first.
  strategies::StatePieces pieces_of_whole(strategies::StatePieces slices) const;
  strategies::StateDictionary slices(const strategies::StateDictionary& whole) const;

  /// Parameters of a stage that are whole on every rank. With Layout::sequence each rank has a
  /// gradient of them for its own positions only.
  const std::vector<at::Tensor>& replicated(int stage, const models::LayerList& layers);
  /// Such gradients become their sum over the ranks, in `format`. Collective; one call.
  void reduce_gradients(const std::vector<at::Tensor>& gradients, at::ScalarType format);

  /// The parameters whose elements this rank counts: its slices, and on the first rank those that
  /// are whole on every one.
  std::vector<at::Tensor> counted(const models::LayerList& layers) const;

  /// Of one micro-batch through a stage, by the whole model's layers.
  Communication communication(int stage, const LayerInput& work) const;
  /// Of reduce_gradients, in a format of so many bytes.
  Communication reduction(const models::LayerList& layers, std::int64_t element_bytes) const;

  /// Only the first of the ranks counts what all of them have.
  bool counts() const { return group_.rank() == 0; }

  std::vector<LayerCollective> take_collectives() { return group_.take_collectives(); }

 private:
  std::vector<at::Tensor> replicated(const models::LayerList& layers) const;
  const ShardSpec* shard_spec_of(const std::string& entry) const;
  bool keeps_logits_sharded() const;

  const models::Workload& workload_;
  TensorGroup group_;
  Layout layout_;
  LinearRoles roles_;
  std::vector<std::vector<Exchange>> exchanges_;       // [stage]
  std::mutex mutex_;                                   // stages are made on their devices' threads
  std::map<int, std::vector<at::Tensor>> replicated_;  // [stage]
  ShardedParameters sharded_;
  std::map<std::string, models::Shape> whole_sizes_;  // by parameter
};

}  // namespace stratagem::tensor_parallel
