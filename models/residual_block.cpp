#include "models/residual_block.h"

#include <stdexcept>
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

BatchNormLayer& last_of(const LayerList& path, const std::string& block) {
  auto* const last = path.empty() ? nullptr : dynamic_cast<BatchNormLayer*>(path.back().get());
  if (last != nullptr) return *last;
  throw std::invalid_argument("the main path of residual block " + block +
                              " must end in a batch normalisation");
}

}  // namespace

ResidualBlock::ResidualBlock(std::string name, LayerList main_path, LayerList shortcut)
    : Layer(std::move(name)),
      main_path_(std::move(main_path)),
      shortcut_(std::move(shortcut)),
      last_(&last_of(main_path_, this->name())) {
  for (const auto& layer : main_path_) adopt(*layer);
  for (const auto& layer : shortcut_) adopt(*layer);
}

at::Tensor ResidualBlock::forward(const at::Tensor& input) {
  const LayerSpan before_last(main_path_.data(), main_path_.size() - 1);
  const at::Tensor main = models::forward(before_last, input);
  return last_->forward_with_relu(main, models::forward(shortcut_, input));
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
