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
///
/// If there are more ranks than units, equally many ranks have an equal part of each unit, and all
/// of these have its last `common` elements (the key and value head of several query heads). The
/// dimension is then 0, of one part.
struct ShardSpec {
  std::int64_t dimension = 0;
  std::int64_t parts = 1;
  std::int64_t unit = 1;
  std::int64_t common = 0;
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

/// The rows of a rank's slice that other ranks have, too.
struct CommonPart {
  int units = 1;
  int unit = 0;          // this rank's
  int sharers = 1;       // the ranks that have the unit; 1: nothing is common
  int place = 0;         // this rank's among them
  std::int64_t own = 0;  // the rows before the common ones

  bool exists() const { return sharers > 1; }
};
CommonPart common_part_of(std::int64_t length, const ShardSpec& shard_spec, int rank, int ranks);

/// Returns views of a whole tensor that together are a rank's slice, in the order of its elements:
/// one, whose sharded dimension becomes two, the parts and the rank's share of one; or two if
/// several ranks have a part of a unit, of which the second is common to them.
std::vector<at::Tensor> views_of_slice(const at::Tensor& whole, const ShardSpec& shard_spec,
                                       int rank, int ranks);
/// Return a rank's contiguous slice of a whole tensor, and the whole from all ranks' slices.
/// slice_of throws std::invalid_argument if there are fewer units than ranks.
at::Tensor slice_of(const at::Tensor& whole, const ShardSpec& shard_spec, int rank, int ranks);
at::Tensor assemble(const std::vector<at::Tensor>& slices, const ShardSpec& shard_spec);

}  // namespace stratagem::tensor_parallel
