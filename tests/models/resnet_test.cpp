#include "models/resnet.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/optimizer.h"
#include "tests/models/filled_model.h"
#include "tests/models/parameter_count.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::resnet_test {
namespace {

std::vector<std::string> layer_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& layer : model.layers) {
    names.push_back(layer->name());
  }
  return names;
}

std::size_t state_entries(const Model& model) {
  return parameters(model.layers).size() + buffers(model.layers).size();
}

TEST(Resnet, FiftyHasTorchvisionsSize) {
  const Model model = find_model("resnet50").make({});
  EXPECT_EQ(parameter_count(model.layers), 25'557'032);
  EXPECT_EQ(parameters(model.layers).size(), 161U);
  EXPECT_EQ(state_entries(model), 320U);
}

TEST(Resnet, EighteenHasTorchvisionsSize) {
  const Model model = find_model("resnet18").make({});
  EXPECT_EQ(parameter_count(model.layers), 11'689'512);
  EXPECT_EQ(parameters(model.layers).size(), 62U);
  EXPECT_EQ(state_entries(model), 122U);
}

TEST(Resnet, LayersAreStemBlocksAndHead) {
  EXPECT_EQ(layer_names(find_model("resnet18").make({})),
            (std::vector<std::string>{"conv1", "bn1", "relu", "maxpool", "layer1.0", "layer1.1",
                                      "layer2.0", "layer2.1", "layer3.0", "layer3.1", "layer4.0",
                                      "layer4.1", "avgpool", "fc"}));
  EXPECT_EQ(find_model("resnet50").make({}).layers.size(), 4U + 16U + 2U);
}

// 4,089,184,256 multiply-adds forward at 224 pixels: the published "4.1 GFLOPs".
TEST(Resnet, FiftysFlopsAreThePublishedOnes) {
  const Model model = find_model("resnet50").make({});
  const PassFlops one = flops(model.layers, {1, 3, 224, 224}, false);
  EXPECT_DOUBLE_EQ(one.forward, 2 * 4'089'184'256.0);
  const double stem = 2.0 * 64 * 112 * 112 * 3 * 49;
  EXPECT_DOUBLE_EQ(one.backward, 2 * one.forward - stem);
  EXPECT_DOUBLE_EQ(flops(model.layers, {7, 3, 224, 224}, true).total(), 7 * 3 * one.forward);
}

TEST(Resnet, FlopsOfPartsAddUp) {
  Model model = find_model("resnet50").make({});
  const Shape input{2, 3, 96, 96};
  const PassFlops whole = flops(model.layers, input, false);
  const std::vector<std::size_t> boundary{find_layer(model.layers, "layer3")};
  const std::vector<LayerList> stages = cut(std::move(model.layers), boundary);
  const PassFlops first = flops(stages[0], input, false);
  const PassFlops second = flops(stages[1], output_shape(stages[0], input), true);
  EXPECT_DOUBLE_EQ(first.total() + second.total(), whole.total());
}

// The strides sit where version 1.5 has them; shapes as formulas and as run agree everywhere.
TEST(Resnet, ShapesMatchTheFormula) {
  const Model model = filled_model("resnet50", {.width = 0.125, .classes = 7});
  const at::NoGradGuard no_grad;
  at::Tensor activation = at::ones({2, 3, 65, 97});
  Shape shape = activation.sizes().vec();
  for (const auto& layer : model.layers) {
    shape = layer->output_shape(shape);
    activation = layer->forward(activation);
    EXPECT_EQ(activation.sizes().vec(), shape) << layer->name();
  }
  EXPECT_EQ(shape, (Shape{2, 7}));
}

TEST(Resnet, CutAnywhereGivesTheSameOutputAndGradients) {
  const ModelOptions options{.width = 0.125, .classes = 10};
  const at::Tensor input = at::randn({4, 3, 32, 32});
  const Model whole = filled_model("resnet18", options, 5);
  const at::Tensor expected = forward(whole.layers, input);
  expected.square().sum().backward();

  for (std::size_t boundary = 1; boundary < whole.layers.size(); ++boundary) {
    const std::vector<std::size_t> boundaries{boundary};
    const std::vector<LayerList> stages =
        cut(filled_model("resnet18", options, 5).layers, boundaries);
    const at::Tensor sent = forward(stages[0], input);
    const at::Tensor received = sent.detach().requires_grad_(true);
    const at::Tensor copy = received.detach().clone();
    const at::Tensor output = forward(stages[1], received);
    EXPECT_TRUE(at::equal(received, copy)) << "stage input changed, boundary " << boundary;
    EXPECT_TRUE(at::equal(output, expected)) << "boundary " << boundary;
    output.square().sum().backward();
    sent.backward(received.grad());
    const at::Tensor gradient = stages[0][0]->parameters()[0].tensor.grad();
    EXPECT_TRUE(at::equal(gradient, whole.layers[0]->parameters()[0].tensor.grad()))
        << "boundary " << boundary;
  }
}

// Weights are packed for a step: one that the optimizer has changed must be packed again.
TEST(Resnet, OurConvolutionsTrainAsATensDo) {
  const SingleThread single_thread;
  at::Generator generator = at::detail::createCPUGenerator();  // two steps make rounding grow
  const at::Tensor input =
      at::empty({4, 3, 64, 64}).normal_(0, 1, generator).contiguous(at::MemoryFormat::ChannelsLast);
  const auto losses = [&input](bool own) {
    const ReferenceKernelsGuard guard(!own);
    const Model model = filled_model("resnet18", {.classes = 10}, 5);
    OptimizerOptions options;
    options.learning_rate = 0.05;
    Optimizer optimizer(parameters(model.layers), options);
    std::vector<double> seen;
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      for (const at::Tensor& micro_batch : input.split(2)) {
        const at::Tensor loss = forward(model.layers, micro_batch).square().mean();
        loss.backward();
        seen.push_back(loss.item<double>());
      }
      optimizer.step();
    }
    return seen;
  };
  const std::vector<double> atens = losses(false);
  const std::vector<double> ours = losses(true);
  for (std::size_t i = 0; i < atens.size(); ++i) {
    EXPECT_NEAR(ours[i], atens[i], 1e-3 * atens[i]) << "micro-batch " << i;
  }
  EXPECT_GT(std::abs(atens[2] - atens[0]), 0.05 * atens[0]) << "the update is to be seen";
}

TEST(Resnet, EvaluationLeavesStatisticsAndInputsAlone) {
  const Model model = filled_model("resnet18", {.width = 0.125});
  set_training(model.layers, false);
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::randn({2, 3, 32, 32});
  for (const auto& layer : model.layers) {
    EXPECT_FALSE(layer->training());
  }
  const at::Tensor first = forward(model.layers, input);
  for (const NamedTensor& buffer : buffers(model.layers)) {
    const double expected = buffer.name.ends_with("running_var") ? 1 : 0;
    EXPECT_TRUE((buffer.tensor == expected).all().item<bool>()) << buffer.name;
  }
  EXPECT_TRUE(at::equal(forward(model.layers, input), first));
}

TEST(Resnet, TooSmallAnImageIsRefusedInOneLine) {
  const Model model = find_model("resnet50").make({.width = 0.125});
  EXPECT_NO_THROW(output_shape(model.layers, {2, 3, 32, 32}));
  try {
    output_shape(model.layers, {2, 3, 31, 64});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "image 31x64 is too small for layer conv1: at least 32x32");
  }
  EXPECT_THROW(output_shape(model.layers, {2, 1, 64, 64}), std::invalid_argument);
  EXPECT_THROW(output_shape(model.layers, {2, 3}), std::invalid_argument);
}

TEST(Resnet, InitialValuesFollowTorchvision) {
  const Model model = filled_model("resnet50", {}, 3);
  for (const NamedTensor& parameter : parameters(model.layers)) {
    const at::Tensor& tensor = parameter.tensor;
    if (tensor.dim() == 4) {
      const double fan_out = static_cast<double>(tensor.size(0) * tensor.size(2) * tensor.size(3));
      EXPECT_NEAR(tensor.std().item<double>() / std::sqrt(2 / fan_out), 1, 0.05) << parameter.name;
    } else if (parameter.name.starts_with("fc.")) {
      EXPECT_LE(tensor.abs().max().item<double>(), 1 / std::sqrt(2048.0));
      EXPECT_GE(tensor.abs().max().item<double>(), 0.9 / std::sqrt(2048.0));
    } else {
      const double expected = parameter.name.ends_with("weight") ? 1 : 0;
      EXPECT_TRUE((tensor == expected).all().item<bool>()) << parameter.name;
    }
  }
}

TEST(Resnet, SeedDecidesTheParameters) {
  const auto weight = [](std::uint64_t seed) {
    return filled_model("resnet18", {.width = 0.125}, seed).layers[0]->parameters()[0];
  };
  EXPECT_TRUE(at::equal(weight(1).tensor, weight(1).tensor));
  EXPECT_FALSE(at::equal(weight(1).tensor, weight(2).tensor));
}

}  // namespace
}  // namespace stratagem::models::resnet_test
