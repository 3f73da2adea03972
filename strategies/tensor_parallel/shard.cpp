#include "strategies/tensor_parallel/shard.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "strategies/tensor_parallel/sharded_form.h"
#include "strategies/tensor_parallel/share.h"

namespace stratagem::tensor_parallel {

ShardedLayers shard(const models::Workload& workload, models::LayerList whole,
                    const LinearRoles& roles, layer_exchange::ExchangeGroup& group, Layout layout) {
  Sharder sharder(workload, roles, group, layout);
  ShardedLayers result;
  for (LayerPointer& layer : whole) {
    const ShardedForm* const form = find_form(*layer);
    if (form == nullptr) {
      throw std::invalid_argument("layer " + layer->name() + " cannot be sharded");
    }
    result.layers.push_back(form->make == nullptr ? std::move(layer)
                                                  : form->make(std::move(layer), sharder));
  }
  result.parameters = sharder.parameters();
  return result;
}

at::Tensor view_of_slice(const at::Tensor& whole, const ShardSpec& shard_spec, int rank,
                         int ranks) {
  const std::int64_t run = whole.size(shard_spec.dimension) / shard_spec.parts;
  const std::int64_t units = run / shard_spec.unit;
  if (units < ranks) {
    throw std::invalid_argument(std::to_string(ranks) + " ranks cannot share a dimension of " +
                                std::to_string(units));
  }
  const auto [first, count] = share_of(units, rank, ranks);
  return whole.unflatten(shard_spec.dimension, {shard_spec.parts, run})
      .narrow(shard_spec.dimension + 1, first * shard_spec.unit, count * shard_spec.unit);
}

at::Tensor slice_of(const at::Tensor& whole, const ShardSpec& shard_spec, int rank, int ranks) {
  return view_of_slice(whole, shard_spec, rank, ranks)
      .flatten(shard_spec.dimension, shard_spec.dimension + 1)
      .clone(at::MemoryFormat::Contiguous);
}

at::Tensor assemble(const std::vector<at::Tensor>& slices, const ShardSpec& shard_spec) {
  std::vector<at::Tensor> in_parts;
  for (const at::Tensor& slice : slices) {
    in_parts.push_back(
        slice.unflatten(shard_spec.dimension,
                        {shard_spec.parts, slice.size(shard_spec.dimension) / shard_spec.parts}));
  }
  return at::cat(in_parts, shard_spec.dimension + 1)
      .flatten(shard_spec.dimension, shard_spec.dimension + 1);
}

}  // namespace stratagem::tensor_parallel
