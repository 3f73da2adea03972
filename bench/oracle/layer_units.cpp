#include "bench/oracle/layer_units.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <typeinfo>
#include <utility>

#include "models/basic_layers.h"
#include "models/resnet.h"
#include "models/script_layer.h"

namespace stratagem::bench {
namespace {

using models::Layer;
using models::LayerSpan;
using models::Shape;

/// Returns everything that a unit's kernels can depend on but the values.
std::string signature_of(const LayerUnit& unit) {
  std::string text =
      fmt::format("{} {} {} {} {}", models::to_string(unit.input), models::to_string(unit.output),
                  unit.first, unit.adds, static_cast<bool>(unit.before_relu));
  for (const Layer* layer : unit.layers) text += typeid(*layer).name();
  for (const auto& [name, tensor] : unit.parameters()) {
    text += models::to_string(tensor.sizes().vec());
  }
  return text;
}

class Collector {
 public:
  /// Returns the shape of the output.
  Shape add(LayerSpan layers, Shape shape) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Layer& layer = *layers[i];
      if (const auto* block = dynamic_cast<const models::ResidualBlock*>(&layer)) {
        shape = add_block(*block, shape);
        continue;
      }
      auto* const norm = dynamic_cast<models::BatchNormLayer*>(&layer);
      const bool fused = norm != nullptr && i + 1 < layers.size() &&
                         dynamic_cast<models::ReluLayer*>(layers[i + 1].get()) != nullptr;
      shape = fused ? add_rectified(*norm, shape, false) : add_layer(layer, shape);
      if (fused) ++i;
    }
    return shape;
  }

  std::vector<LayerUnit> take() { return std::move(units_); }

 private:
  Shape add_block(const models::ResidualBlock& block, const Shape& input) {
    const LayerSpan main = block.main_path();
    add(block.shortcut(), input);
    const Shape shape = add(main.first(main.size() - 1), input);
    return add_rectified(dynamic_cast<models::BatchNormLayer&>(*main.back()), shape, true);
  }

  Shape add_layer(Layer& layer, const Shape& input) {
    LayerUnit unit = unit_of(layer, input);
    unit.is_product = dynamic_cast<models::ConvolutionLayer*>(&layer) != nullptr ||
                      dynamic_cast<models::LinearLayer*>(&layer) != nullptr;
    unit.forward = [&layer](const at::Tensor& x, const at::Tensor&) { return layer.forward(x); };
    return keep(std::move(unit));
  }

  Shape add_rectified(models::BatchNormLayer& norm, const Shape& input, bool adds) {
    LayerUnit unit = unit_of(norm, input);
    unit.name += adds ? " + sum + relu" : " + relu";
    unit.adds = adds;
    unit.forward = [&norm](const at::Tensor& x, const at::Tensor& addend) {
      return norm.forward_with_relu(x, addend);
    };
    unit.before_relu = [&norm](const at::Tensor& x, const at::Tensor& addend) {
      const at::Tensor y = norm.forward(x);
      return addend.defined() ? y + addend : y;
    };
    return keep(std::move(unit));
  }

  LayerUnit unit_of(Layer& layer, const Shape& input) const {
    LayerUnit unit;
    unit.name = layer.name();
    unit.layers = {&layer};
    unit.input = input;
    unit.output = layer.output_shape(input);
    unit.first = units_.empty();
    const models::LayerFlops one = layer.flops(input);
    unit.flops = one.forward + one.backward_weight + (unit.first ? 0 : one.backward_input);
    return unit;
  }

  Shape keep(LayerUnit unit) {
    Shape output = unit.output;
    units_.push_back(std::move(unit));
    return output;
  }

  std::vector<LayerUnit> units_;
};

template <class Tensors>
std::vector<models::NamedTensor> tensors_of(const std::vector<Layer*>& layers, Tensors tensors) {
  std::vector<models::NamedTensor> all;
  for (Layer* layer : layers) {
    const auto& own = tensors(*layer);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

std::vector<models::NamedTensor> LayerUnit::parameters() const {
  return tensors_of(layers, [](const Layer& layer) { return layer.parameters(); });
}

std::vector<models::NamedTensor> LayerUnit::buffers() const {
  return tensors_of(layers, [](const Layer& layer) { return layer.buffers(); });
}

std::vector<LayerUnit> layer_units(LayerSpan layers, const Shape& input) {
  Collector collector;
  collector.add(layers, input);
  return collector.take();
}

std::vector<std::size_t> distinct(const std::vector<LayerUnit>& units) {
  std::set<std::string> seen;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (seen.insert(signature_of(units[i])).second) found.push_back(i);
  }
  return found;
}

double undecided_share(models::LayerSpan layers, const models::Shape& input, double rounding) {
  double all = 0;
  double fewest = std::numeric_limits<double>::max();
  for (const LayerUnit& unit : layer_units(layers, input)) {
    const Layer* const layer = unit.layers.front();
    const auto* const script = dynamic_cast<const models::ScriptLayer*>(layer);
    const bool rectifies = unit.before_relu ||
                           dynamic_cast<const models::ReluLayer*>(layer) != nullptr ||
                           (script != nullptr && script->rectifies());
    if (!rectifies) continue;
    double elements = 1;
    for (const std::int64_t size : unit.output) elements *= static_cast<double>(size);
    all += elements;
    fewest = std::min(fewest, elements);
  }
  // Half of the units let their gradients pass, each with an equal share.
  constexpr double expected = 0.01;
  constexpr double units = 4;
  return all * rounding > expected ? std::sqrt(units / (fewest / 2)) : 0;
}

std::int64_t summed_terms(const std::vector<models::NamedTensor>& parameters) {
  std::int64_t terms = 0;
  for (const auto& [name, tensor] : parameters) {
    terms += tensor.dim() == 0 ? 1 : tensor.numel() / tensor.size(0);
  }
  return terms;
}

}  // namespace stratagem::bench
