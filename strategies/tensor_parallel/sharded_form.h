// ShardedForm: the way in which the ranks of a tensor-parallel group share one kind of layer. It
// registers itself (STRATAGEM_REGISTER), so that a new kind of layer is its own file in models/ and
// the file of its form here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/basic_layers.h"
#include "models/registry/named_entries.h"
#include "models/workload.h"
#include "strategies/tensor_parallel/exchanges.h"
#include "strategies/tensor_parallel/parallel_linear.h"
#include "strategies/tensor_parallel/shard.h"

namespace stratagem::tensor_parallel {

using LayerPointer = std::unique_ptr<models::Layer>;

constexpr ShardSpec by_rows = {.dimension = 0};
constexpr ShardSpec by_columns = {.dimension = 1};

/// Makes a rank's parts of layers and records how their parameters are sharded.
class Sharder {
 public:
  /// All must outlive it.
  Sharder(const models::Workload& workload, const LinearRoles& roles,
          layer_exchange::ExchangeGroup& group, Layout layout)
      : workload_(workload), roles_(roles), group_(group), layout_(layout) {}

  /// Return some of the layer's outputs, or inputs. The layer has memory in the meantime.
  LayerPointer column(models::LinearLayer& layer, const ShardSpec& shard_spec, bool gather_output);
  LayerPointer row(models::LinearLayer& layer, const ShardSpec& shard_spec);
  /// Returns this rank's slice of the parameter of that name.
  at::Tensor slice(const std::string& name, const at::Tensor& whole, const ShardSpec& shard_spec);
  /// Gives the layer memory and its initial values.
  void materialise(models::Layer& layer) const { workload_.materialise(layer, at::kCPU); }

  LinearRole role_of(const models::Layer& layer) const { return roles_.at(layer.name()); }
  layer_exchange::ExchangeGroup& group() const { return group_; }
  Layout layout() const { return layout_; }
  const ShardedParameters& parameters() const { return parameters_; }

 private:
  const models::Workload& workload_;
  const LinearRoles& roles_;
  layer_exchange::ExchangeGroup& group_;
  Layout layout_;
  ShardedParameters parameters_;
};

/// A whole layer of a model and its role.
struct PlacedLayer {
  const models::Layer& layer;
  const LinearRoles& roles;
  bool is_head = false;  // the loss is computed from its sharded outputs
};

struct ShardedForm {
  std::string name = {};  // the name of the kind of layer
  bool (*is_of)(const models::Layer& layer) = nullptr;
  /// Makes a rank's part. Null: each rank has the whole layer, which works on single positions.
  LayerPointer (*make)(LayerPointer whole, Sharder& sharder) = nullptr;
  /// Returns a micro-batch's exchanges in the order of the forward pass, by formula from the whole
  /// layer. Null: there are none.
  std::vector<Exchange> (*exchanges)(const PlacedLayer& whole) = nullptr;
  /// The layer is element-wise, so that a column-parallel layer's outputs may pass it.
  bool element_wise = false;

  std::string lacks() const { return is_of == nullptr ? "is_of" : ""; }
  static models::Registry<ShardedForm>& registry();
};

/// Returns the form of the layer's kind, or null if there is none.
const ShardedForm* find_form(const models::Layer& layer);

}  // namespace stratagem::tensor_parallel
