#include "models/resnet.h"

#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "models/basic_layers.h"

namespace stratagem::models {
namespace {

constexpr std::int64_t kStemChannels = 64;

std::int64_t expansion(ResidualKind kind) { return kind == ResidualKind::bottleneck ? 4 : 1; }

struct BlockOptions {
  ResidualKind kind = ResidualKind::basic;
  std::int64_t in_channels = 0;
  std::int64_t width = 0;  // the channels of the 3x3 convolutions
  std::int64_t stride = 1;
  double model_width = 1.0;

  std::int64_t out_channels() const { return width * expansion(kind); }
};

// Appends "<prefix>.conv<k>" and "<prefix>.bn<k>".
void add_convolution(LayerList& path, const std::string& prefix, int k,
                     const ConvolutionOptions& options) {
  const std::string number = std::to_string(k);
  path.push_back(std::make_unique<ConvolutionLayer>(prefix + ".conv" + number, options));
  path.push_back(std::make_unique<BatchNormLayer>(prefix + ".bn" + number, options.out_channels));
}

LayerList main_path(const std::string& prefix, const BlockOptions& block) {
  const std::int64_t width = block.width;
  std::vector<ConvolutionOptions> convolutions;
  if (block.kind == ResidualKind::bottleneck) {
    convolutions = {{block.in_channels, width, 1, 1, 0},
                    {width, width, 3, block.stride, 1},
                    {width, block.out_channels(), 1, 1, 0}};
  } else {
    convolutions = {{block.in_channels, width, 3, block.stride, 1}, {width, width, 3, 1, 1}};
  }
  LayerList path;
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    convolutions[i].model_width = block.model_width;
    if (i > 0) path.push_back(std::make_unique<ReluLayer>(prefix + ".relu"));
    add_convolution(path, prefix, static_cast<int>(i) + 1, convolutions[i]);
  }
  return path;
}

LayerList shortcut(const std::string& prefix, const BlockOptions& block) {
  LayerList path;
  if (block.stride != 1 || block.in_channels != block.out_channels()) {
    ConvolutionOptions options{block.in_channels, block.out_channels(), 1, block.stride, 0};
    options.model_width = block.model_width;
    path.push_back(std::make_unique<ConvolutionLayer>(prefix + ".downsample.0", options));
    path.push_back(
        std::make_unique<BatchNormLayer>(prefix + ".downsample.1", block.out_channels()));
  }
  return path;
}

std::unique_ptr<Layer> residual_block(const std::string& name, const BlockOptions& block) {
  LayerList main = main_path(name, block);
  LayerList side = shortcut(name, block);
  return std::make_unique<ResidualBlock>(name, std::move(main), std::move(side));
}

void add_stem(LayerList& layers, std::int64_t channels) {
  layers.push_back(std::make_unique<ConvolutionLayer>(
      "conv1", ConvolutionOptions{3, channels, 7, 2, 3, kResnetSmallestImage}));
  layers.push_back(std::make_unique<BatchNormLayer>("bn1", channels));
  layers.push_back(std::make_unique<ReluLayer>("relu"));
  layers.push_back(std::make_unique<MaxPoolLayer>("maxpool"));
}

Model make_resnet(std::string name, ResidualKind kind, const std::array<std::int64_t, 4>& blocks,
                  const ModelOptions& options) {
  const std::int64_t base = scaled_width(kStemChannels, options.width);
  Model model{std::move(name), {}};
  add_stem(model.layers, base);
  std::int64_t channels = base;
  for (std::size_t group = 0; group < blocks.size(); ++group) {
    for (std::int64_t i = 0; i < blocks[group]; ++i) {
      const BlockOptions block{kind, channels, base << group, group > 0 && i == 0 ? 2 : 1,
                               options.width};
      model.layers.push_back(
          residual_block("layer" + std::to_string(group + 1) + "." + std::to_string(i), block));
      channels = block.out_channels();
    }
  }
  model.layers.push_back(std::make_unique<AveragePoolLayer>("avgpool"));
  model.layers.push_back(
      std::make_unique<LinearLayer>("fc", channels, class_count(options, kResnetClasses)));
  return model;
}

}  // namespace

ModelEntry resnet_entry(const std::string& name, std::string summary, ResidualKind kind,
                        const std::array<std::int64_t, 4>& blocks) {
  ModelEntry entry;
  entry.name = name;
  entry.summary = std::move(summary);
  entry.input_kind = InputKind::image;
  entry.default_image_size = kResnetDefaultImage;
  entry.features = 3;
  entry.classes = kResnetClasses;
  entry.make = [name, kind, blocks](const ModelOptions& options) {
    return make_resnet(name, kind, blocks, options);
  };
  entry.has_batch_norm = true;
  entry.smallest_image = kResnetSmallestImage;
  entry.default_cut = {"layer3"};
  // conv1, bn1, relu and maxpool precede the blocks; avgpool and fc follow them.
  entry.layers = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{6});
  entry.family = "resnet";
  return entry;
}

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
