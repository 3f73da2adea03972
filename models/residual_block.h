// ResidualBlock: relu(main(x) + shortcut(x)), the unit that ResNets repeat.
#pragma once

#include <string>

#include "models/basic_layers.h"
#include "models/layer.h"

namespace stratagem::models {

class ResidualBlock : public Layer {
 public:
  /// An empty shortcut is the identity. Both paths must end in the same shape, and the main path in
  /// a batch normalisation, which computes the sum and the ReLU, too (batch_norm.h).
  ResidualBlock(std::string name, LayerList main_path, LayerList shortcut);

  at::Tensor forward(const at::Tensor& input) override;
  Shape output_shape(const Shape& input) const override;
  LayerFlops flops(const Shape& input) const override;
  void set_training(bool training) override;

  const LayerList& main_path() const { return main_path_; }
  const LayerList& shortcut() const { return shortcut_; }

 private:
  LayerList main_path_;
  LayerList shortcut_;
  BatchNormLayer* last_;  // the main path's
};

}  // namespace stratagem::models
