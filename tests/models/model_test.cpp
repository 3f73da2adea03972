#include "models/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "models/registry/registry.h"
#include "tests/models/filled_model.h"

namespace stratagem::models::model_test {
namespace {

TEST(Model, FindLayerTakesNamesAndGroups) {
  const Model model = find_model("resnet18").make({.width = 0.125});
  EXPECT_EQ(find_layer(model.layers, "conv1"), 0U);
  EXPECT_EQ(find_layer(model.layers, "layer3"), 8U);
  EXPECT_EQ(find_layer(model.layers, "layer3.1"), 9U);
}

TEST(Model, UnknownLayerListsThePossibleCuts) {
  const Model model = find_model("resnet18").make({.width = 0.125});
  try {
    find_layer(model.layers, "layer");
    FAIL() << "found";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "no layer \"layer\" to cut before; choices: bn1, relu, maxpool, layer1, "
                 "layer1.0, layer1.1, layer2, layer2.0, layer2.1, layer3, layer3.0, layer3.1, "
                 "layer4, layer4.0, layer4.1, avgpool, fc");
  }
}

TEST(Model, CutKeepsEveryLayerInOrder) {
  Model model = find_model("mlp").make({.width = 0.01});
  const std::vector<std::size_t> boundaries{1, 4, 14};
  const std::vector<LayerList> stages = cut(std::move(model.layers), boundaries);
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].size(), 1U);
  EXPECT_EQ(stages[1].size(), 3U);
  EXPECT_EQ(stages[1].front()->name(), "relu1");
  EXPECT_EQ(stages[2].size(), 10U);
  EXPECT_EQ(stages[3].back()->name(), "fc8");
}

TEST(Model, CutRefusesEmptyStages) {
  const std::vector<std::vector<std::size_t>> wrong{{0}, {3}, {2, 2}, {2, 1}};
  for (const auto& boundaries : wrong) {
    EXPECT_THROW(cut(find_model("toy").make({}).layers, boundaries), std::invalid_argument);
  }
  EXPECT_EQ(cut(find_model("toy").make({}).layers, {}).size(), 1U);
}

TEST(Model, LinearFlops) {
  const Model model = find_model("toy").make({});
  const PassFlops whole = flops(model.layers, {20, 10}, false);
  EXPECT_DOUBLE_EQ(whole.forward, 2.0 * 20 * (10 * 10 + 10 * 5));
  EXPECT_DOUBLE_EQ(whole.backward, 2.0 * 20 * (10 * 10 + 2 * 10 * 5));
}

TEST(Layer, ConvertsInPlace) {
  const Model model = filled_model("resnet18", {.width = 0.125});
  const std::vector<NamedTensor> handles = parameters(model.layers);
  forward(model.layers, at::randn({2, 3, 32, 32})).sum().backward();
  for (const auto& layer : model.layers) {
    layer->to(at::kCPU, at::kDouble, at::MemoryFormat::ChannelsLast);
  }
  for (const NamedTensor& parameter : handles) {
    EXPECT_EQ(parameter.tensor.scalar_type(), at::kDouble);
    EXPECT_TRUE(parameter.tensor.is_leaf() && parameter.tensor.requires_grad());
    EXPECT_FALSE(parameter.tensor.grad().defined());
    EXPECT_TRUE(parameter.tensor.dim() != 4 ||
                parameter.tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  for (const NamedTensor& buffer : buffers(model.layers)) {
    const bool counts = buffer.name.ends_with("num_batches_tracked");
    EXPECT_EQ(buffer.tensor.scalar_type(), counts ? at::kLong : at::kDouble) << buffer.name;
    EXPECT_FALSE(buffer.tensor.requires_grad());
  }
  forward(model.layers, at::randn({2, 3, 32, 32}, at::kDouble)).sum().backward();
  EXPECT_EQ(handles[0].tensor.grad().scalar_type(), at::kDouble);
  EXPECT_EQ(buffers(model.layers)[2].tensor.item<std::int64_t>(), 2);
}

}  // namespace
}  // namespace stratagem::models::model_test
