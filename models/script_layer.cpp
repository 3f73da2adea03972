#include "models/script_layer.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <utility>

#include "models/script_source.h"

namespace stratagem::models {
namespace {

using torch::jit::Module;
using Replacements = c10::IValue::HashIdentityIValueMap;

/// Returns a copy of a module in which each tensor of `replacements` is another one.
Module copy_of(const Module& module, Replacements replacements) {
  return Module(c10::IValue(module._ivalue()).deepcopy(replacements).toObject());
}

}  // namespace

struct ScriptLayer::Script {
  std::shared_ptr<const ScriptSource> source;
  Module module;  // on the layer's tensors
};

ScriptLayer::ScriptLayer(const std::shared_ptr<const ScriptSource>& source)
    : Layer(source->name()) {
  Replacements own;
  std::set<const void*> seen;  // a submodule may use a tensor under two names
  for (const auto& [name, value] : source->module().named_parameters()) {
    if (!seen.insert(value.unsafeGetTensorImpl()).second) continue;
    if (!value.requires_grad()) {
      throw std::invalid_argument(
          fmt::format("parameter {}.{} is frozen; export a model whose parameters all require a "
                      "gradient",
                      this->name(), name));
    }
    own.emplace(value, register_parameter(name, value.sizes().vec(), InitialValues::stored(value)));
  }
  for (const auto& [name, value] : source->module().named_buffers()) {
    if (!seen.insert(value.unsafeGetTensorImpl()).second) continue;
    own.emplace(value, register_buffer(name, value.sizes().vec(), InitialValues::stored(value),
                                       value.scalar_type()));
  }
  script_ = std::make_unique<Script>(Script{source, copy_of(source->module(), std::move(own))});
  set_training(true);
}

ScriptLayer::~ScriptLayer() = default;

at::Tensor ScriptLayer::forward(const at::Tensor& input) { return call(script_->module, input); }

Shape ScriptLayer::output_shape(const Shape& input) const {
  try {
    Shape output = script_->source->sizes(input).output;
    output[0] = input.at(0);
    return output;
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        fmt::format("layer {} cannot take {}: {}", name(), to_string(input), reason_of(error)));
  }
}

LayerFlops ScriptLayer::flops(const Shape& input) const {
  output_shape(input);
  const LayerFlops one = script_->source->sizes(input).flops;
  const auto samples = static_cast<double>(input[0]);
  return {samples * one.forward, samples * one.backward_input, samples * one.backward_weight};
}

void ScriptLayer::set_training(bool training) {
  Layer::set_training(training);
  script_->module.train(training);
}

bool ScriptLayer::rectifies() const { return script_->source->rectifies(); }

}  // namespace stratagem::models
