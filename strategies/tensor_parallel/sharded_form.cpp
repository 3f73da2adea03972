#include "strategies/tensor_parallel/sharded_form.h"

#include <ATen/ATen.h>

namespace stratagem::tensor_parallel {

LayerPointer Sharder::column(models::LinearLayer& layer, const ShardSpec& shard_spec,
                             bool gather_output) {
  materialise(layer);
  at::Tensor bias;
  if (layer.bias().defined()) bias = slice(layer.name() + ".bias", layer.bias(), shard_spec);
  return std::make_unique<ColumnParallelLinear>(
      layer.name(), slice(layer.name() + ".weight", layer.weight(), shard_spec), bias, group_,
      ColumnOptions{layout_, gather_output});
}

LayerPointer Sharder::row(models::LinearLayer& layer, const ShardSpec& shard_spec) {
  materialise(layer);
  at::Tensor bias;
  if (layer.bias().defined()) bias = layer.bias().detach();
  return std::make_unique<RowParallelLinear>(
      layer.name(), slice(layer.name() + ".weight", layer.weight(), shard_spec), bias, group_,
      layout_);
}

at::Tensor Sharder::slice(const std::string& name, const at::Tensor& whole,
                          const ShardSpec& shard_spec) {
  parameters_[name] = shard_spec;
  return slice_of(whole.detach(), shard_spec, group_.rank(), group_.size());
}

models::Registry<ShardedForm>& ShardedForm::registry() {
  static models::Registry<ShardedForm> forms("sharded form");
  return forms;
}

const ShardedForm* find_form(const models::Layer& layer) {
  for (const std::string& name : ShardedForm::registry().names()) {
    const ShardedForm& form = ShardedForm::registry().find(name);
    if (form.is_of(layer)) return &form;
  }
  return nullptr;
}

}  // namespace stratagem::tensor_parallel
