// Layers in a row's arithmetic against the reference kernels: right ones pass, with room, and one
// wrong lane in float32 is seen, whichever of our kernels has it.
#include "bench/oracle/layer_comparison.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "models/basic_layers.h"
#include "models/cpu_kernels/attention.h"
#include "models/cpu_kernels/convolution.h"
#include "models/cpu_kernels/kernels/wide_vectors.h"
#include "models/transformer.h"
#include "tests/bench/oracle/broken_operators.h"
#include "tests/models/single_thread.h"

namespace stratagem::bench::layer_comparison_test {
namespace {

using broken::BrokenOperator;
using ::testing::HasSubstr;

struct Found {
  Differences differences;
  std::size_t layers = 0;
};

/// A model's layers on two micro-batches; of a part, those whose names begin with it.
Found compare(const models::WorkloadOptions& options, std::array<std::int64_t, 2> samples,
              const OwnArithmetic& own, const std::string& part = "") {
  const models::SingleThread single_thread;
  const models::Workload workload(options);
  const models::Model model = workload.make_model();
  const auto units = layer_units(model.layers, workload.input_shape(options.batch));
  Found found;
  for (const std::size_t index : distinct(units)) {
    const LayerUnit& unit = units[index];
    if (!unit.name.starts_with(part)) continue;
    const SizedLayer layer{unit, samples,
                           unit.first ? workload.make_batch(0).inputs : at::Tensor()};
    found.differences.add("", compare_layer(layer, layer, own));
    ++found.layers;
  }
  return found;
}

models::WorkloadOptions workload_of(const std::string& model, at::ScalarType dtype = at::kFloat) {
  models::WorkloadOptions options;
  options.model = model;
  options.batch = 8;
  options.dtype = dtype;
  if (model.starts_with("resnet")) options.image_size = 64;
  if (model.starts_with("gpt")) {
    options.sequence_length = 32;
    options.loss = models::Loss::cross_entropy;
  }
  return options;
}

OwnArithmetic arithmetic(at::ScalarType dtype = at::kFloat, bool split_backward = false) {
  return {.dtype = dtype,
          .roundoff = unit_roundoff(dtype),
          .reference = dtype,
          .split_backward = split_backward};
}

class LayersOf : public testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {};

TEST_P(LayersOf, AreTheReferenceKernelsRounded) {
  const auto& [model, dtype] = GetParam();
  for (const bool split : {false, true}) {
    const Found found = compare(workload_of(model, dtype), {8, 3}, arithmetic(dtype, split));
    const Differences& worst = found.differences;
    EXPECT_TRUE(worst.within()) << worst.verdict().message;
    EXPECT_LE(worst.error(), worst.bound() / 2) << worst.where() << ": too near to the bound";
  }
}

INSTANTIATE_TEST_SUITE_P(Float32, LayersOf,
                         testing::Combine(testing::Values("toy", "mlp", "column_linear", "resnet18",
                                                          "resnet50", "gpt-tiny", "gpt-small"),
                                          testing::Values(at::kFloat)));
INSTANTIATE_TEST_SUITE_P(Others, LayersOf,
                         testing::Combine(testing::Values("toy", "mlp", "resnet18", "gpt-tiny"),
                                          testing::Values(at::kDouble, at::kBFloat16)));

TEST(LayerUnits, AreWhatAStepCalls) {
  const models::Workload workload(workload_of("resnet18"));
  const models::Model model = workload.make_model();
  const auto units = layer_units(model.layers, workload.input_shape(8));
  std::vector<std::string> names;
  for (const LayerUnit& unit : units) names.push_back(unit.name);
  EXPECT_THAT(
      std::vector<std::string>(names.begin(), names.begin() + 7),
      testing::ElementsAre("conv1", "bn1 + relu", "maxpool", "layer1.0.conv1",
                           "layer1.0.bn1 + relu", "layer1.0.conv2", "layer1.0.bn2 + sum + relu"));
  EXPECT_EQ(names.back(), "fc");
  EXPECT_EQ(units.back().input, (models::Shape{8, 512}));
  EXPECT_EQ(units.size(), 3U + 8 * 4 + 3 * 2 + 2) << "stem, blocks, shortcuts, head";
  EXPECT_EQ(distinct(units).size(), 3U + 3 + 3 * 6 + 2) << "blocks repeat";
  EXPECT_TRUE(units[0].first);
  EXPECT_FALSE(units[1].first);
}

// ---- wrong kernels, each in float32 alone

struct Setting {
  std::string model;
  std::string part = "";
  bool split_backward = false;
};

std::string mistake_in(const Setting& setting, const std::string& name,
                       const BrokenOperator::Mistake& mistake) {
  const BrokenOperator broken(name, mistake);
  const Found found = compare(workload_of(setting.model), {8, 3},
                              arithmetic(at::kFloat, setting.split_backward), setting.part);
  EXPECT_FALSE(found.differences.within()) << name << " of " << setting.model;
  EXPECT_GT(found.differences.error(), 4 * found.differences.bound()) << "hardly";
  return found.differences.where();
}

TEST(BrokenKernel, OfALinearLayerIsSeen) {
  for (const Setting& of : {Setting{"mlp"}, Setting{"gpt-small", "blocks.0"}}) {
    mistake_in(of, "mkldnn::_linear_pointwise", broken::lose_the_last_lane);
    mistake_in(of, "mkldnn::_linear_pointwise", broken::round_to_bfloat16);
  }
  mistake_in({"mlp"}, "mkldnn::_linear_pointwise", broken::forget_to_transpose);
  // The weight's gradient of the first micro-batch, of few rows.
  EXPECT_THAT(mistake_in({"mlp"}, "aten::mm", broken::lose_the_last_lane),
              HasSubstr("gradient of"));
}

TEST(BrokenKernel, ThatAddsToAGradientIsSeen) {
  for (const Setting& of : {Setting{"mlp"}, Setting{"resnet18", "layer4.0"}}) {
    EXPECT_THAT(mistake_in(of, "aten::addmm_", broken::lose_the_last_lane),
                HasSubstr("gradient of"));
  }
  // Of many rows, where MKL's product is the slower one, it is a product and a sum, or one of our
  // own, which is no operator.
  using models::kernels::WideVectors;
  const WideVectors wide = models::kernels::wide_vectors();
  if (wide != WideVectors::halved) {
    const char* const name = wide == WideVectors::full ? "aten::add_" : "aten::addmm_";
    EXPECT_THAT(mistake_in({"gpt-small", "blocks.0"}, name, broken::lose_the_last_lane),
                HasSubstr("gradient of"));
  }
  EXPECT_THAT(mistake_in({"gpt-tiny"}, "aten::index_add_", broken::lose_the_last_lane),
              HasSubstr("gradient of"));
}

TEST(BrokenKernel, OfAPackedConvolutionIsSeen) {
  const Setting last_block{"resnet18", "layer4.0"};
  EXPECT_THAT(mistake_in(last_block, "mkldnn::_convolution_pointwise", broken::lose_the_last_lane),
              HasSubstr("output"));
  EXPECT_THAT(mistake_in(last_block, "mkldnn::_convolution_transpose_pointwise",
                         broken::lose_the_last_lane),
              HasSubstr("gradient of the input"));
  // The weight's gradient by a product.
  mistake_in({"resnet50", "layer4.0"}, "mkldnn::_linear_pointwise", broken::lose_the_last_lane);
}

TEST(BrokenKernel, OfAPointwiseConvolutionIsSeen) {
  EXPECT_THAT(mistake_in({"resnet50"}, "mkldnn::_linear_pointwise", broken::lose_the_last_lane),
              HasSubstr("conv"));
  EXPECT_THAT(mistake_in({"resnet50", "layer1.0"}, "aten::conv2d", broken::lose_the_last_lane),
              HasSubstr("conv"));
}

TEST(BrokenKernel, OfAFoldedConvolutionIsSeen) {
  for (const bool split : {false, true}) {
    const Setting first_block{"resnet50", "layer1.0", split};
    EXPECT_THAT(mistake_in(first_block, "aten::conv2d", broken::lose_the_last_folded_row),
                HasSubstr("conv"));
    EXPECT_THAT(
        mistake_in(first_block, "aten::convolution_backward", broken::lose_the_last_folded_row),
        HasSubstr("gradient of the input"));
  }
}

TEST(BrokenKernel, OfTheSecondHalfOfABackwardPassIsSeen) {
  EXPECT_THAT(mistake_in({.model = "resnet18", .split_backward = true},
                         "aten::convolution_backward", broken::lose_the_last_lane),
              HasSubstr("gradient of"));
  mistake_in({.model = "gpt-tiny", .split_backward = true}, "aten::sum",
             broken::lose_the_last_lane);
}

bool is_broken(const at::Tensor& input) {
  return !models::uses_reference_kernels() && input.scalar_type() == at::kFloat;
}

/// A normalisation and the ReLU that it takes along, as one layer, of which one lane is wrong.
class BrokenNorm : public models::Layer {
 public:
  enum class Mistake { none, output, input_gradient };

  BrokenNorm(std::int64_t channels, Mistake mistake)
      : Layer("bn"), norm_("bn", channels), mistake_(mistake) {
    adopt(norm_);
  }
  at::Tensor forward(const at::Tensor& input) override {
    if (!is_broken(input) || mistake_ == Mistake::none) return norm_.forward_with_relu(input);
    if (mistake_ == Mistake::output) return lost(norm_.forward_with_relu(input));
    const at::Tensor given = input.view_as(input);
    given.register_hook([](const at::Tensor& gradient) { return lost(gradient); });
    return norm_.forward_with_relu(given);
  }
  models::Shape output_shape(const models::Shape& input) const override { return input; }

 private:
  static at::Tensor lost(const at::Tensor& tensor) {
    at::Tensor mask = at::ones({1, tensor.size(1), 1, 1});
    mask.select(1, -1).zero_();
    return tensor * mask;
  }

  models::BatchNormLayer norm_;
  Mistake mistake_;
};

/// Attention of two heads that loses the last value of each position.
class BrokenAttention : public models::Layer {
 public:
  enum class Mistake { none, output, input_gradient };

  explicit BrokenAttention(Mistake mistake) : Layer("attention"), mistake_(mistake) {}
  at::Tensor forward(const at::Tensor& input) override {
    if (!is_broken(input) || mistake_ == Mistake::none) return models::causal_attention(input, 2);
    if (mistake_ == Mistake::output) return lost(models::causal_attention(input, 2));
    const at::Tensor given = input.view_as(input);
    given.register_hook([](const at::Tensor& gradient) { return lost(gradient); });
    return models::causal_attention(given, 2);
  }
  models::Shape output_shape(const models::Shape& input) const override {
    return {input[0], input[1], input[2] / 3};
  }

 private:
  static at::Tensor lost(const at::Tensor& tensor) {
    at::Tensor mask = at::ones({tensor.size(-1)});
    mask[-1].zero_();
    return tensor * mask;
  }

  Mistake mistake_;
};

/// A convolution that goes on with the weights of the first micro-batch.
class StaleConvolution : public models::Layer {
 public:
  explicit StaleConvolution(at::Tensor weight) : Layer("conv") {
    weight_ = register_parameter("weight", std::move(weight));
  }
  at::Tensor forward(const at::Tensor& input) override {
    if (!is_broken(input)) return models::convolution(input, weight_, 1, 1);
    if (calls_++ % 2 == 0) kept_ = weight_.detach().clone();
    return models::convolution(input, kept_ + (weight_ - weight_.detach()), 1, 1);
  }
  models::Shape output_shape(const models::Shape& input) const override { return input; }

 private:
  at::Tensor weight_;
  at::Tensor kept_;
  int calls_ = 0;
};

Differences compare(std::unique_ptr<models::Layer> layer, const models::Shape& input) {
  const models::SingleThread single_thread;
  models::LayerList layers;
  // What takes the batch has no gradient of its input.
  layers.push_back(std::make_unique<models::InputGradientLayer>("input"));
  layers.push_back(std::move(layer));
  for (const auto& each : layers) {
    each->materialise(/*seed=*/1, at::kCPU, at::kFloat, at::MemoryFormat::Contiguous);
  }
  const auto units = layer_units(layers, input);
  const SizedLayer sized{units.back(), {input[0], input[0]}, {}};
  return compare_layer(sized, sized, arithmetic());
}

TEST(BrokenKernel, OfABatchNormIsSeen) {
  const auto found = [](BrokenNorm::Mistake mistake) {
    return compare(std::make_unique<BrokenNorm>(37, mistake), {4, 37, 5, 5});
  };
  EXPECT_TRUE(found(BrokenNorm::Mistake::none).within());
  for (const auto mistake : {BrokenNorm::Mistake::output, BrokenNorm::Mistake::input_gradient}) {
    const Differences differences = found(mistake);
    EXPECT_GT(differences.error(), 4 * differences.bound()) << differences.where();
  }
}

TEST(BrokenKernel, OfAttentionIsSeen) {
  using Mistake = BrokenAttention::Mistake;
  const auto found = [](Mistake mistake) {
    return compare(std::make_unique<BrokenAttention>(mistake), {4, 70, 96});
  };
  EXPECT_TRUE(found(Mistake::none).within());
  for (const Mistake mistake : {Mistake::output, Mistake::input_gradient}) {
    const Differences differences = found(mistake);
    EXPECT_GT(differences.error(), 4 * differences.bound()) << differences.where();
  }
}

TEST(BrokenKernel, WithWeightsOfBeforeTheUpdateIsSeen) {
  const auto found =
      compare(std::make_unique<StaleConvolution>(at::randn({256, 256, 3, 3})), {2, 256, 8, 8});
  EXPECT_GT(found.error(), 4 * found.bound());
  EXPECT_THAT(found.where(), HasSubstr("of the second micro-batch"));
}

}  // namespace
}  // namespace stratagem::bench::layer_comparison_test
