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

CommonPart common_part_of(std::int64_t length, const ShardSpec& shard_spec, int rank, int ranks) {
  const auto units = static_cast<int>(length / shard_spec.parts / shard_spec.unit);
  if (shard_spec.common == 0 || units >= ranks) return {};
  const int sharers = ranks / units;
  return {.units = units,
          .unit = rank / sharers,
          .sharers = sharers,
          .place = rank % sharers,
          .own = (shard_spec.unit - shard_spec.common) / sharers};
}

std::vector<at::Tensor> views_of_slice(const at::Tensor& whole, const ShardSpec& shard_spec,
                                       int rank, int ranks) {
  const auto [dimension, parts, unit, common] = shard_spec;
  const std::int64_t length = whole.size(dimension);
  if (const CommonPart part = common_part_of(length, shard_spec, rank, ranks); part.exists()) {
    const std::int64_t first = part.unit * unit;
    return {whole.narrow(dimension, first + part.place * part.own, part.own),
            whole.narrow(dimension, first + unit - common, common)};
  }
  const std::int64_t run = length / parts;
  const std::int64_t units = run / unit;
  if (units < ranks) {
    throw std::invalid_argument(std::to_string(ranks) + " ranks cannot share a dimension of " +
                                std::to_string(units));
  }
  const auto [first, count] = share_of(units, rank, ranks);
  return {
      whole.unflatten(dimension, {parts, run}).narrow(dimension + 1, first * unit, count * unit)};
}

at::Tensor slice_of(const at::Tensor& whole, const ShardSpec& shard_spec, int rank, int ranks) {
  const std::vector<at::Tensor> views = views_of_slice(whole, shard_spec, rank, ranks);
  const std::int64_t dimension = shard_spec.dimension;
  if (views.size() > 1) return at::cat(views, dimension);
  return views.front().flatten(dimension, dimension + 1).clone(at::MemoryFormat::Contiguous);
}

at::Tensor assemble(const std::vector<at::Tensor>& slices, const ShardSpec& shard_spec) {
  const auto [dimension, parts, unit, common] = shard_spec;
  std::vector<at::Tensor> in_parts;
  const std::int64_t own = slices.front().size(dimension) - common;
  if (common > 0 && own + common < unit) {
    const std::int64_t sharers = (unit - common) / own;
    for (std::size_t rank = 0; rank < slices.size(); ++rank) {
      in_parts.push_back(slices[rank].narrow(dimension, 0, own));
      const bool ends_unit = (static_cast<std::int64_t>(rank) + 1) % sharers == 0;
      if (ends_unit) in_parts.push_back(slices[rank].narrow(dimension, own, common));
    }
    return at::cat(in_parts, dimension);
  }
  for (const at::Tensor& slice : slices) {
    in_parts.push_back(slice.unflatten(dimension, {parts, slice.size(dimension) / parts}));
  }
  return at::cat(in_parts, dimension + 1).flatten(dimension, dimension + 1);
}

}  // namespace stratagem::tensor_parallel
