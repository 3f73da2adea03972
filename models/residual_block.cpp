#include "models/residual_block.h"

#include <ATen/ops/relu.h>

#include <utility>

#include "models/model.h"

namespace stratagem::models {
namespace {

LayerFlops path_flops(const LayerList& path, const Shape& input) {
  LayerFlops total;
  Shape shape = input;
  for (const auto& layer : path) {
    total += layer->flops(shape);
    shape = layer->output_shape(shape);
  }
  return total;
}

}  // namespace

ResidualBlock::ResidualBlock(std::string name, LayerList main_path, LayerList shortcut)
    : Layer(std::move(name)), main_path_(std::move(main_path)), shortcut_(std::move(shortcut)) {
  for (const auto& layer : main_path_) {
    adopt(*layer);
  }
  for (const auto& layer : shortcut_) {
    adopt(*layer);
  }
}

at::Tensor ResidualBlock::forward(const at::Tensor& input) {
  at::Tensor sum = models::forward(main_path_, input);
  sum.add_(models::forward(shortcut_, input));
  return at::relu_(sum);
}

Shape ResidualBlock::output_shape(const Shape& input) const {
  return models::output_shape(main_path_, input);
}

LayerFlops ResidualBlock::flops(const Shape& input) const {
  LayerFlops total = path_flops(main_path_, input);
  total += path_flops(shortcut_, input);
  return total;
}

void ResidualBlock::set_training(bool training) {
  Layer::set_training(training);
  models::set_training(main_path_, training);
  models::set_training(shortcut_, training);
}

}  // namespace stratagem::models
