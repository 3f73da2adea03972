// ShardedForm: how one kind of layer is shared by the ranks of a tensor-parallel group. It
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

/// Makes a rank's parts of layers and notes how their parameters are sharded.
class Sharder {
 public:
  /// All outlive it.
  Sharder(const models::Workload& workload, const LinearRoles& roles, TensorGroup& group,
          Layout layout)
      : workload_(workload), roles_(roles), group_(group), layout_(layout) {}

  /// Some of the layer's outputs, and some of its inputs. The layer gets memory for the time being.
  LayerPointer column(models::LinearLayer& layer, const ShardSpec& shard_spec, bool gather_output);
  LayerPointer row(models::LinearLayer& layer, const ShardSpec& shard_spec);
  /// This rank's slice of the parameter of that name.
  at::Tensor slice(const std::string& name, const at::Tensor& whole, const ShardSpec& shard_spec);
  /// Gives the layer memory and its first values.
  void materialise(models::Layer& layer) const { workload_.materialise(layer, at::kCPU); }

  LinearRole role_of(const models::Layer& layer) const { return roles_.at(layer.name()); }
  TensorGroup& group() const { return group_; }
  Layout layout() const { return layout_; }
  const ShardedParameters& parameters() const { return parameters_; }

 private:
  const models::Workload& workload_;
  const LinearRoles& roles_;
  TensorGroup& group_;
  Layout layout_;
  ShardedParameters parameters_;
};

/// A whole layer among those of its model.
struct PlacedLayer {
  const models::Layer& layer;
  const LinearRoles& roles;
  bool is_head = false;  // of a language model: the loss is computed of its sharded outputs
};

struct ShardedForm {
  std::string name = {};  // of the kind of layer
  bool (*is_of)(const models::Layer& layer) = nullptr;
  /// Makes a rank's part. Null: each rank has the whole layer, which works on each position alone.
  LayerPointer (*make)(LayerPointer whole, Sharder& sharder) = nullptr;
  /// Of a micro-batch, in the order of the forward pass, by formula from the whole layer. Null:
  /// none.
  std::vector<Exchange> (*exchanges)(const PlacedLayer& whole) = nullptr;
  /// Works on each element alone, so that the outputs of a column-parallel layer may pass it.
  bool element_wise = false;

  std::string lacks() const { return is_of == nullptr ? "is_of" : ""; }
  static models::Registry<ShardedForm>& registry();
};

/// The form of the layer's kind; null where there is none.
const ShardedForm* find_form(const models::Layer& layer);

}  // namespace stratagem::tensor_parallel
