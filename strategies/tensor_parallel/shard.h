// Turns a model's layers into those of one rank among several that share them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/workload.h"
#include "strategies/layer_exchange/exchange_group.h"
#include "strategies/tensor_parallel/exchanges.h"
#include "strategies/tensor_parallel/linear_roles.h"

namespace stratagem::tensor_parallel {

/// The sharding of a parameter: its `dimension` consists of `parts` runs of equal length (query,
/// key and value in one matrix are three parts), each of units of `unit` elements that stay
/// together (a head's features). A rank has its share of the units of each part.
struct ShardSpec {
  std::int64_t dimension = 0;
  std::int64_t parts = 1;
  std::int64_t unit = 1;
};

/// The specs by the parameter's name; other parameters are whole on every rank.
using ShardedParameters = std::map<std::string, ShardSpec>;

struct ShardedLayers {
  models::LayerList layers;
  ShardedParameters parameters;
};

/// Shards a run of layers of a model: embeddings, transformer blocks, normalisations, element-wise
/// functions, and linear layers by their `roles`. Throws std::invalid_argument for another layer.
///
/// A layer without memory is filled from `workload`, sliced and dropped before the next one, so
/// that a rank never holds more than its slices and one whole linear layer or embedding.
ShardedLayers shard(const models::Workload& workload, models::LayerList whole,
                    const LinearRoles& roles, layer_exchange::ExchangeGroup& group, Layout layout);

/// Returns a rank's slice of a whole tensor as a view, with the elements of slice_of() in row-major
/// order: the sharded dimension becomes two, the parts and the rank's share of one.
at::Tensor view_of_slice(const at::Tensor& whole, const ShardSpec& shard_spec, int rank, int ranks);
/// Return a rank's contiguous slice of a whole tensor, and the whole from all ranks' slices.
/// slice_of throws std::invalid_argument if there are fewer units than ranks.
at::Tensor slice_of(const at::Tensor& whole, const ShardSpec& shard_spec, int rank, int ranks);
at::Tensor assemble(const std::vector<at::Tensor>& slices, const ShardSpec& shard_spec);

}  // namespace stratagem::tensor_parallel
