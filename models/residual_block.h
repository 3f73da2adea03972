// ResidualBlock: relu(main(x) + shortcut(x)), the unit that ResNets repeat.
#pragma once

#include <string>

#include "models/layer.h"

namespace stratagem::models {

class ResidualBlock : public Layer {
 public:
  // An empty shortcut is the identity. Both paths must end in the same shape, and the main path in
  // a layer that does not need its output for backward: the sum and the ReLU overwrite it.
  ResidualBlock(std::string name, LayerList main_path, LayerList shortcut);

  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  LayerFlops flops(const Shape& input) const override;
  void set_training(bool training) override;

 private:
  LayerList main_path_;
  LayerList shortcut_;
};

}  // namespace stratagem::models
