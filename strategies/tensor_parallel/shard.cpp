#include "strategies/tensor_parallel/shard.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

#include "models/basic_layers.h"
#include "models/transformer.h"
#include "strategies/tensor_parallel/parallel_linear.h"
#include "strategies/tensor_parallel/vocabulary_parallel.h"

namespace stratagem::tensor_parallel {
namespace {

using models::Layer;
using models::LinearLayer;
using models::TransformerBlock;
using LayerPointer = std::unique_ptr<Layer>;

constexpr ShardSpec by_rows = {0, 1};
constexpr ShardSpec columns = {1, 1};
constexpr ShardSpec query_key_value = {0, 3};

class Sharding {
 public:
  Sharding(const models::Workload& workload, TensorGroup& group, Layout layout, bool last_stage)
      : workload_(workload), group_(group), layout_(layout), last_stage_(last_stage) {}

  ShardedLayers of(models::LayerList whole) && {
    const std::size_t count = whole.size();
    for (std::size_t index = 0; index < count; ++index) {
      const bool more_linear_layers = has_linear(whole, index + 1);
      result_.layers.push_back(converted(std::move(whole[index]), more_linear_layers));
    }
    return std::move(result_);
  }

 private:
  static bool has_linear(const models::LayerList& layers, std::size_t from) {
    for (std::size_t index = from; index < layers.size(); ++index) {
      if (dynamic_cast<const LinearLayer*>(layers[index].get()) != nullptr) return true;
    }
    return false;
  }

  LayerPointer converted(LayerPointer layer, bool more_linear_layers) {
    if (dynamic_cast<TransformerBlock*>(layer.get()) != nullptr) return of_block(std::move(layer));
    if (auto* embedding = dynamic_cast<models::TokenEmbeddingLayer*>(layer.get())) {
      is_language_model_ = true;
      return of_embedding(*embedding);
    }
    if (auto* linear = dynamic_cast<LinearLayer*>(layer.get())) {
      if (stays_whole(*linear, more_linear_layers)) return layer;
      return of_linear(*linear, more_linear_layers);
    }
    if (dynamic_cast<models::LayerNormLayer*>(layer.get()) != nullptr) {
      is_language_model_ = true;
      return layer;
    }
    if (is_element_wise(*layer)) return layer;
    throw std::invalid_argument("layer " + layer->name() + " cannot be sharded");
  }

  static bool is_element_wise(const Layer& layer) {
    return dynamic_cast<const models::ReluLayer*>(&layer) != nullptr ||
           dynamic_cast<const models::InputGradientLayer*>(&layer) != nullptr;
  }

  /// One that is left over, and whose outputs the ranks cannot share evenly.
  bool stays_whole(const LinearLayer& layer, bool more_linear_layers) const {
    return !after_column_ && !more_linear_layers && layer.weight().size(0) % group_.size() != 0;
  }

  /// Alone it is a language model's head; else layers alternate.
  LayerPointer of_linear(LinearLayer& layer, bool more_linear_layers) {
    const bool head = is_language_model_ && last_stage_ && !more_linear_layers;
    if (std::exchange(after_column_, false)) return row(layer);
    const bool paired = more_linear_layers && !head;
    after_column_ = paired;
    result_.ends_with_vocabulary_parallel_logits = head;
    return column(layer, by_rows, {layout_, /*gather_output=*/!paired && !head});
  }

  LayerPointer of_block(LayerPointer whole) {
    is_language_model_ = true;
    auto& block = dynamic_cast<TransformerBlock&>(*whole);
    const std::int64_t heads = block.heads() / group_.size();
    const std::string name = block.name();
    TransformerBlock::Parts parts = std::move(block).take_parts();
    whole.reset();  // it lists the parts' tensors, which are dropped with the parts
    const auto linear = [](const LayerPointer& part) -> LinearLayer& {
      return dynamic_cast<LinearLayer&>(*part);
    };
    parts.qkv = column(linear(parts.qkv), query_key_value, {layout_, false});
    parts.projection = row(linear(parts.projection));
    parts.up = column(linear(parts.up), by_rows, {layout_, false});
    parts.down = row(linear(parts.down));
    parts.heads = heads;
    return std::make_unique<TransformerBlock>(name, std::move(parts));
  }

  LayerPointer of_embedding(models::TokenEmbeddingLayer& layer) {
    workload_.materialise(layer, at::kCPU);
    auto made = std::make_unique<VocabParallelEmbedding>(
        layer.name(), shard(layer.name() + ".token.weight", layer.token(), by_rows),
        layer.position().detach(), group_, layout_);
    result_.parallel.push_back(made.get());
    return made;
  }

  LayerPointer column(LinearLayer& layer, const ShardSpec& shard_spec,
                      const ColumnOptions& options) {
    workload_.materialise(layer, at::kCPU);
    at::Tensor bias;
    if (layer.bias().defined()) bias = shard(layer.name() + ".bias", layer.bias(), shard_spec);
    auto made = std::make_unique<ColumnParallelLinear>(
        layer.name(), shard(layer.name() + ".weight", layer.weight(), shard_spec), bias, group_,
        options);
    result_.parallel.push_back(made.get());
    return made;
  }

  LayerPointer row(LinearLayer& layer) {
    workload_.materialise(layer, at::kCPU);
    at::Tensor bias;
    if (layer.bias().defined()) bias = layer.bias().detach();
    auto made = std::make_unique<RowParallelLinear>(
        layer.name(), shard(layer.name() + ".weight", layer.weight(), columns), bias, group_,
        layout_);
    result_.parallel.push_back(made.get());
    return made;
  }

  at::Tensor shard(const std::string& name, const at::Tensor& whole, const ShardSpec& shard_spec) {
    result_.parameters[name] = shard_spec;
    return slice_of(whole.detach(), shard_spec, group_.rank(), group_.size());
  }

  const models::Workload& workload_;
  TensorGroup& group_;
  Layout layout_;
  bool last_stage_;
  bool is_language_model_ = false;
  bool after_column_ = false;
  ShardedLayers result_;
};

}  // namespace

ShardedLayers shard(const models::Workload& workload, models::LayerList whole, TensorGroup& group,
                    Layout layout, bool last_stage) {
  return Sharding(workload, group, layout, last_stage).of(std::move(whole));
}

at::Tensor view_of_slice(const at::Tensor& whole, const ShardSpec& shard_spec, int rank,
                         int ranks) {
  const std::int64_t run = whole.size(shard_spec.dimension) / shard_spec.parts;
  if (run % ranks != 0) {
    throw std::invalid_argument(std::to_string(ranks) + " ranks cannot share a dimension of " +
                                std::to_string(run));
  }
  const std::int64_t share = run / ranks;
  return whole.unflatten(shard_spec.dimension, {shard_spec.parts, run})
      .narrow(shard_spec.dimension + 1, rank * share, share);
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
