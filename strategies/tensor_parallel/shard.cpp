#include "strategies/tensor_parallel/shard.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "models/basic_layers.h"
#include "models/transformer.h"
#include "strategies/tensor_parallel/parallel_linear.h"
#include "strategies/tensor_parallel/share.h"
#include "strategies/tensor_parallel/vocabulary_parallel.h"

namespace stratagem::tensor_parallel {
namespace {

using models::Layer;
using models::LinearLayer;
using models::TransformerBlock;
using LayerPointer = std::unique_ptr<Layer>;

constexpr ShardSpec by_rows = {.dimension = 0};
constexpr ShardSpec columns = {.dimension = 1};

class Sharding {
 public:
  Sharding(const models::Workload& workload, const LinearRoles& roles, TensorGroup& group,
           Layout layout)
      : workload_(workload), roles_(roles), group_(group), layout_(layout) {}

  ShardedLayers of(models::LayerList whole) && {
    for (LayerPointer& layer : whole) result_.layers.push_back(converted(std::move(layer)));
    return std::move(result_);
  }

 private:
  LayerPointer converted(LayerPointer layer) {
    if (dynamic_cast<TransformerBlock*>(layer.get()) != nullptr) return of_block(std::move(layer));
    if (auto* embedding = dynamic_cast<models::TokenEmbeddingLayer*>(layer.get())) {
      return of_embedding(*embedding);
    }
    if (dynamic_cast<LinearLayer*>(layer.get()) != nullptr) return of_linear(std::move(layer));
    if (is_position_wise(*layer)) return layer;
    throw std::invalid_argument("layer " + layer->name() + " cannot be sharded");
  }

  static bool is_position_wise(const Layer& layer) {
    return dynamic_cast<const models::LayerNormLayer*>(&layer) != nullptr ||
           dynamic_cast<const models::ReluLayer*>(&layer) != nullptr ||
           dynamic_cast<const models::InputGradientLayer*>(&layer) != nullptr;
  }

  LayerPointer of_linear(LayerPointer whole) {
    auto& layer = dynamic_cast<LinearLayer&>(*whole);
    const LinearRole role = roles_.at(layer.name());
    if (role == LinearRole::whole) return whole;
    if (role == LinearRole::row) return row(layer, columns);
    return column(layer, by_rows, {layout_, /*gather_output=*/role == LinearRole::gathered_column});
  }

  LayerPointer of_block(LayerPointer whole) {
    auto& block = dynamic_cast<TransformerBlock&>(*whole);
    const std::int64_t heads = block.heads();
    const std::string name = block.name();
    TransformerBlock::Parts parts = std::move(block).take_parts();
    whole.reset();  // it lists the parts' tensors, which are dropped with the parts
    const auto linear = [](const LayerPointer& part) -> LinearLayer& {
      return dynamic_cast<LinearLayer&>(*part);
    };
    const std::int64_t of_head = linear(parts.projection).weight().size(1) / heads;
    parts.qkv = column(linear(parts.qkv), {.dimension = 0, .parts = 3, .unit = of_head},
                       {layout_, /*gather_output=*/false});
    parts.projection = row(linear(parts.projection), {.dimension = 1, .unit = of_head});
    parts.up = column(linear(parts.up), by_rows, {layout_, /*gather_output=*/false});
    parts.down = row(linear(parts.down), columns);
    parts.heads = share_of(heads, group_.rank(), group_.size()).count;
    return std::make_unique<TransformerBlock>(name, std::move(parts));
  }

  LayerPointer of_embedding(models::TokenEmbeddingLayer& layer) {
    workload_.materialise(layer, at::kCPU);
    const std::int64_t vocabulary = layer.token().size(0);
    return std::make_unique<VocabParallelEmbedding>(
        layer.name(), shard(layer.name() + ".token.weight", layer.token(), by_rows),
        layer.position().detach(), vocabulary, group_, layout_);
  }

  LayerPointer column(LinearLayer& layer, const ShardSpec& shard_spec,
                      const ColumnOptions& options) {
    workload_.materialise(layer, at::kCPU);
    at::Tensor bias;
    if (layer.bias().defined()) bias = shard(layer.name() + ".bias", layer.bias(), shard_spec);
    return std::make_unique<ColumnParallelLinear>(
        layer.name(), shard(layer.name() + ".weight", layer.weight(), shard_spec), bias, group_,
        options);
  }

  LayerPointer row(LinearLayer& layer, const ShardSpec& shard_spec) {
    workload_.materialise(layer, at::kCPU);
    at::Tensor bias;
    if (layer.bias().defined()) bias = layer.bias().detach();
    return std::make_unique<RowParallelLinear>(
        layer.name(), shard(layer.name() + ".weight", layer.weight(), shard_spec), bias, group_,
        layout_);
  }

  at::Tensor shard(const std::string& name, const at::Tensor& whole, const ShardSpec& shard_spec) {
    result_.parameters[name] = shard_spec;
    return slice_of(whole.detach(), shard_spec, group_.rank(), group_.size());
  }

  const models::Workload& workload_;
  const LinearRoles& roles_;
  TensorGroup& group_;
  Layout layout_;
  ShardedLayers result_;
};

}  // namespace

ShardedLayers shard(const models::Workload& workload, models::LayerList whole,
                    const LinearRoles& roles, TensorGroup& group, Layout layout) {
  return Sharding(workload, roles, group, layout).of(std::move(whole));
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
