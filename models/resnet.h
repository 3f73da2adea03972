// ResNet, version 1.5: the stride of a down-sampling bottleneck is in its 3x3 convolution.
//
// He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015; names, order and
// initial distributions follow torchvision.models.resnet.
// Layers: conv1, bn1, relu, maxpool, layer1.0, layer1.1, ..., layer4.N, avgpool, fc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/basic_layers.h"
#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models {

/// Computes relu(main(x) + shortcut(x)), the unit that ResNets repeat.
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

enum class ResidualKind {
  basic,       // two 3x3 convolutions
  bottleneck,  // 1x1, 3x3, 1x1, the last four times as wide
};

/// The image sizes in pixels a side. Five halvings leave one pixel of the smallest.
inline constexpr std::int64_t kResnetSmallestImage = 32;
inline constexpr std::int64_t kResnetDefaultImage = 128;
inline constexpr std::int64_t kResnetClasses = 1000;

/// Returns the registration of a ResNet. `blocks` counts the residual blocks of layer1 to layer4.
/// `make` throws std::invalid_argument for a width or a number of classes out of range.
ModelEntry resnet_entry(const std::string& name, std::string summary, ResidualKind kind,
                        const std::array<std::int64_t, 4>& blocks);

}  // namespace stratagem::models
