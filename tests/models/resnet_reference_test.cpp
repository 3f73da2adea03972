// Our ResNets against torchvision's, float64: outputs, losses, gradients, running statistics and
// an SGD step, as recorded by make_reference.py, to a relative 1e-9.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/reference_kernels.h"
#include "models/loss.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/registry/registry.h"
#include "tests/models/reference_values.h"
#include "tests/models/single_thread.h"

namespace stratagem::models::resnet_reference_test {
namespace {

constexpr double kTolerance = 1e-9;

const nlohmann::json& reference() {
  static const nlohmann::json document = [] {
    std::ifstream file(STRATAGEM_TEST_DATA "/models/reference_resnet.json");
    return nlohmann::json::parse(file);
  }();
  return document;
}

void fill(const Model& model) {
  const at::NoGradGuard no_grad;
  std::vector<NamedTensor> tensors = parameters(model.layers);
  const std::vector<NamedTensor> statistics = buffers(model.layers);
  tensors.insert(tensors.end(), statistics.begin(), statistics.end());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].tensor.is_floating_point()) {
      tensors[i].tensor.copy_(value(tensors[i].name, i, tensors[i].tensor.sizes()));
    }
  }
}

void expect_close(double actual, double expected, double scale, const std::string& what) {
  EXPECT_LE(std::abs(actual - expected), kTolerance * std::max(std::abs(expected), scale))
      << what << ": " << actual << " instead of " << expected;
}

void expect_names(const std::vector<NamedTensor>& tensors, const nlohmann::json& expected) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) {
    names.push_back(tensor.name);
  }
  EXPECT_EQ(names, expected.get<std::vector<std::string>>());
}

void expect_gradients(const Model& model, const nlohmann::json& expected) {
  const std::vector<NamedTensor> all = parameters(model.layers);
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double norm = expected[i][0];
    ASSERT_GT(norm, 0);
    ASSERT_TRUE(all[i].tensor.grad().defined()) << all[i].name;
    expect_close(all[i].tensor.grad().norm().item<double>(), norm, norm, all[i].name + " norm");
    expect_close(checksum(all[i].tensor.grad()), expected[i][1], norm, all[i].name + " checksum");
  }
}

// Model, memory format, whether our kernels are on.
using Case = std::tuple<std::string, at::MemoryFormat, bool>;

class ResnetReference : public testing::TestWithParam<Case> {
 protected:
  ResnetReference()
      : guard_(!std::get<2>(GetParam())),
        expected_(reference().at("models").at(std::get<0>(GetParam()))),
        model_(find_model(std::get<0>(GetParam())).make({})) {
    const at::MemoryFormat format = std::get<1>(GetParam());
    for (const auto& layer : model_.layers) {
      layer->materialise(0, at::kCPU, at::kDouble, format);
    }
    fill(model_);
    const std::int64_t batch = reference().at("batch");
    const std::int64_t image = reference().at("image");
    inputs_ =
        (uniform(reference().at("input_index"), {batch, 3, image, image}) * 3.0).contiguous(format);
    labels_ = at::tensor(reference().at("labels").get<std::vector<std::int64_t>>());
  }

  at::Tensor backward(Loss kind, const char* name) {
    const at::Tensor output = forward(model_.layers, inputs_);
    const at::Tensor value =
        loss(kind, output, make_targets(kind, labels_, output.size(1), at::kDouble), 1.0);
    expect_close(value.item<double>(), expected_.at(name).at("loss"), 0, name);
    value.backward();
    expect_gradients(model_, expected_.at(name).at("gradients"));
    return output.detach();
  }

  SingleThread single_thread_;
  ReferenceKernelsGuard guard_;
  const nlohmann::json& expected_;
  Model model_;
  at::Tensor inputs_;
  at::Tensor labels_;
};

TEST_P(ResnetReference, NamesAreTorchvisions) {
  expect_names(parameters(model_.layers), expected_.at("parameters"));
  expect_names(buffers(model_.layers), expected_.at("buffers"));
}

TEST_P(ResnetReference, MeanSquaredErrorAndItsGradients) {
  const at::Tensor output = backward(Loss::mse, "mse");
  const auto first = expected_.at("output_first").get<std::vector<double>>();
  for (std::size_t i = 0; i < first.size(); ++i) {
    expect_close(output[0][static_cast<std::int64_t>(i)].item<double>(), first[i], 0, "output");
  }
  expect_close(checksum(output), expected_.at("output_checksum"), 0, "output checksum");
}

TEST_P(ResnetReference, CrossEntropyStatisticsStepAndEvaluation) {
  backward(Loss::cross_entropy, "cross_entropy");

  const std::vector<NamedTensor> statistics = buffers(model_.layers);
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    expect_close(checksum(statistics[i].tensor), expected_.at("buffer_checksums")[i], 0,
                 statistics[i].name);
  }

  const std::vector<NamedTensor> trained = parameters(model_.layers);
  std::vector<at::Tensor> before;
  for (const NamedTensor& parameter : trained) {
    before.push_back(parameter.tensor.detach().clone());
  }
  Optimizer optimizer(trained, {.learning_rate = reference().at("learning_rate"),
                                .momentum = reference().at("momentum"),
                                .weight_decay = reference().at("weight_decay")});
  optimizer.step();
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor update = trained[i].tensor.detach() - before[i];
    expect_close(checksum(update), expected_.at("update_checksums")[i],
                 update.norm().item<double>(), trained[i].name + " update");
  }

  set_training(model_.layers, false);
  const at::NoGradGuard no_grad;
  expect_close(checksum(forward(model_.layers, inputs_)), expected_.at("evaluation_checksum"), 0,
               "evaluation");
}

INSTANTIATE_TEST_SUITE_P(Models, ResnetReference,
                         testing::Values(Case{"resnet18", at::MemoryFormat::Contiguous, false},
                                         Case{"resnet18", at::MemoryFormat::ChannelsLast, true},
                                         Case{"resnet50", at::MemoryFormat::Contiguous, false},
                                         Case{"resnet50", at::MemoryFormat::ChannelsLast, true}),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::get<0>(test.param) +
                                  (std::get<2>(test.param) ? "_folded" : "_plain");
                         });

}  // namespace
}  // namespace stratagem::models::resnet_reference_test
