#include "models/model.h"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>

#include "models/basic_layers.h"

namespace stratagem::models {
namespace {

bool is_relu(const Layer& layer) { return dynamic_cast<const ReluLayer*>(&layer) != nullptr; }

// Returns every name of a boundary inside the model: "bn1, relu, layer1, layer1.0, ...".
std::string possible_cuts(const LayerList& layers) {
  std::string text;
  std::string group =
      layers.empty() ? "" : layers[0]->name().substr(0, layers[0]->name().find('.'));
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const std::string& name = layers[i]->name();
    const std::string prefix = name.substr(0, name.find('.'));
    if (prefix != group && prefix != name) text += (text.empty() ? "" : ", ") + prefix;
    group = prefix;
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

using Pass = at::Tensor (Layer::*)(const at::Tensor&);

at::Tensor passed_through(LayerSpan layers, const at::Tensor& input, Pass last_pass) {
  at::Tensor activation = input;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto* const norm = dynamic_cast<BatchNormLayer*>(layers[i].get());
    if (norm != nullptr && i + 1 < layers.size() && is_relu(*layers[i + 1])) {
      activation = norm->forward_with_relu(activation);
      ++i;
    } else {
      const Pass pass = i + 1 < layers.size() ? &Layer::forward : last_pass;
      activation = (layers[i].get()->*pass)(activation);
    }
  }
  return activation;
}

}  // namespace

at::Tensor forward(LayerSpan layers, const at::Tensor& input) {
  return passed_through(layers, input, &Layer::forward);
}

at::Tensor recompute(LayerSpan layers, const at::Tensor& input) {
  return passed_through(layers, input, &Layer::recompute);
}

std::vector<NamedTensor> parameters(LayerSpan layers) {
  std::vector<NamedTensor> all;
  for (const auto& layer : layers) {
    all.insert(all.end(), layer->parameters().begin(), layer->parameters().end());
  }
  return all;
}

std::vector<NamedTensor> buffers(LayerSpan layers) {
  std::vector<NamedTensor> all;
  for (const auto& layer : layers) {
    all.insert(all.end(), layer->buffers().begin(), layer->buffers().end());
  }
  return all;
}

void set_training(LayerSpan layers, bool training) {
  for (const auto& layer : layers) layer->set_training(training);
}

Shape output_shape(LayerSpan layers, const Shape& input) {
  Shape shape = input;
  for (const auto& layer : layers) shape = layer->output_shape(shape);
  return shape;
}

PassFlops flops(LayerSpan layers, const Shape& input, bool first_input_needs_gradient) {
  PassFlops total;
  Shape shape = input;
  bool input_needs_gradient = first_input_needs_gradient;
  for (const auto& layer : layers) {
    const LayerFlops one = layer->flops(shape);
    total.forward += one.forward;
    total.remade += one.remade;
    total.unread = one.unread;
    total.backward += one.backward_weight + (input_needs_gradient ? one.backward_input : 0);
    input_needs_gradient = true;
    shape = layer->output_shape(shape);
  }
  return total;
}

bool lies_in(std::string_view layer, std::string_view name) {
  return layer == name ||
         (layer.size() > name.size() && layer.starts_with(name) && layer[name.size()] == '.');
}

std::size_t find_layer(const LayerList& layers, std::string_view name) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (lies_in(layers[i]->name(), name)) return i;
  }
  throw std::invalid_argument("no layer \"" + std::string(name) +
                              "\" to cut before; choices: " + possible_cuts(layers));
}

std::vector<LayerList> cut(LayerList&& layers, std::span<const std::size_t> boundaries) {
  std::size_t previous = 0;
  for (const std::size_t boundary : boundaries) {
    if (boundary <= previous || boundary >= layers.size()) {
      throw std::invalid_argument(fmt::format(
          "cannot cut {} layers before layer {}: boundaries must increase and leave no stage empty",
          layers.size(), boundary));
    }
    previous = boundary;
  }
  std::vector<LayerList> stages;
  auto begin = layers.begin();
  for (std::size_t i = 0; i <= boundaries.size(); ++i) {
    const auto end = i < boundaries.size()
                         ? layers.begin() + static_cast<std::ptrdiff_t>(boundaries[i])
                         : layers.end();
    stages.emplace_back(std::make_move_iterator(begin), std::make_move_iterator(end));
    begin = end;
  }
  return stages;
}

}  // namespace stratagem::models
