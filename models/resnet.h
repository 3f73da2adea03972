// ResNet, version 1.5: the stride of a down-sampling bottleneck is in its 3x3 convolution.
//
// He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015; names, order and
// initial distributions follow torchvision.models.resnet.
// Layers: conv1, bn1, relu, maxpool, layer1.0, layer1.1, ..., layer4.N, avgpool, fc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/model.h"
#include "models/registry/registry.h"

namespace stratagem::models {

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
