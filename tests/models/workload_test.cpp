#include "models/workload.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "tests/models/single_thread.h"

namespace stratagem::models::workload_test {
namespace {

WorkloadOptions small(const std::string& model) {
  return {.model = model, .batch = 6, .image_size = model == "toy" ? 0 : 32, .width = 0.125};
}

TEST(Workload, BatchesAreDeterministicAndDiffer) {
  const Workload workload(small("resnet18"));
  const Batch first = workload.make_batch(0);
  EXPECT_TRUE(at::equal(first.inputs, Workload(small("resnet18")).make_batch(0).inputs));
  EXPECT_TRUE(at::equal(first.targets, workload.make_batch(0).targets));
  EXPECT_FALSE(at::equal(first.inputs, workload.make_batch(1).inputs));
  WorkloadOptions other = small("resnet18");
  other.seed = 1;
  EXPECT_FALSE(at::equal(first.inputs, Workload(other).make_batch(0).inputs));
  other.seed = 0;
  other.dtype = at::kDouble;
  EXPECT_TRUE(at::equal(first.inputs.to(at::kDouble), Workload(other).make_batch(0).inputs));
}

TEST(Workload, BatchHasTheShapeTypeAndFormatAskedFor) {
  WorkloadOptions options = small("resnet18");
  options.dtype = at::kDouble;
  options.classes = 9;
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    options.format = format;
    const Batch batch = Workload(options).make_batch(3);
    EXPECT_EQ(batch.inputs.sizes(), (Shape{6, 3, 32, 32}));
    EXPECT_TRUE(batch.inputs.is_contiguous(format));
    EXPECT_EQ(batch.inputs.scalar_type(), at::kDouble);
    EXPECT_EQ(batch.targets.sizes(), (Shape{6, 9}));
    EXPECT_EQ(batch.targets.scalar_type(), at::kDouble);
    EXPECT_TRUE(at::equal(batch.targets.sum(1), at::ones({6}, at::kDouble)));
    EXPECT_TRUE(batch.slice(2, 3).inputs.is_contiguous(format));
  }
  options.loss = Loss::cross_entropy;
  const Batch batch = Workload(options).make_batch(3);
  EXPECT_EQ(batch.targets.sizes(), (Shape{6}));
  EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
}

TEST(Workload, SliceIsAView) {
  const Batch batch = Workload(small("toy")).make_batch(0);
  const Batch part = batch.slice(4, 2);
  EXPECT_EQ(part.size(), 2);
  EXPECT_TRUE(at::equal(part.inputs, batch.inputs.slice(0, 4, 6)));
  EXPECT_TRUE(at::equal(part.targets, batch.targets.slice(0, 4, 6)));
  EXPECT_EQ(part.inputs.storage().data(), batch.inputs.storage().data());
}

TEST(Workload, MicroBatchLossesAddUpToTheBatchsLoss) {
  for (const Loss kind : {Loss::mse, Loss::cross_entropy}) {
    WorkloadOptions options = small("toy");
    options.loss = kind;
    options.dtype = at::kDouble;
    const Workload workload(options);
    const Model model = workload.make_model();
    const Batch batch = workload.make_batch(0);
    const auto part = [&](std::int64_t start, std::int64_t count) {
      const Batch slice = batch.slice(start, count);
      const double weight = static_cast<double>(count) / static_cast<double>(batch.size());
      return workload.loss(forward(model.layers, slice.inputs), slice.targets, weight)
          .item<double>();
    };
    EXPECT_NEAR(part(0, 4) + part(4, 2), part(0, 6), 1e-14) << to_string(kind);
    EXPECT_GT(part(0, 6), 0.01);
  }
}

TEST(Workload, ModelIsConvertedAndDeterministic) {
  WorkloadOptions options = small("resnet18");
  options.dtype = at::kDouble;
  const Workload workload(options);
  const Model first = workload.make_model();
  const Model second = workload.make_model();
  const at::Tensor& weight = first.layers[0]->parameters()[0].tensor;
  EXPECT_EQ(weight.scalar_type(), at::kDouble);
  EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(weight, second.layers[0]->parameters()[0].tensor));
}

std::vector<NamedTensor> tensors_of(LayerSpan layers) {
  std::vector<NamedTensor> all = parameters(layers);
  std::ranges::copy(buffers(layers), std::back_inserter(all));
  return all;
}

TEST(Workload, ALayersValuesAreTheSameWhicheverOthersAreFilled) {
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    WorkloadOptions options{.model = name, .width = 0.0625, .loss = Loss::cross_entropy, .seed = 7};
    const Workload workload(options);
    options.dtype = at::kDouble;
    const Workload in_double(options);
    const Model whole = workload.make_model();
    const Model model = workload.make_meta_model();
    const Model wide = in_double.make_meta_model();
    for (const NamedTensor& each : tensors_of(model.layers)) EXPECT_TRUE(each.tensor.is_meta());
    for (std::size_t index = model.layers.size(); index-- > 0;) {  // the last layer first
      workload.materialise(*model.layers[index], at::kCPU);
      in_double.materialise(*wide.layers[index], at::kCPU);
      const auto expected = tensors_of(LayerSpan(&whole.layers[index], 1));
      const auto found = tensors_of(LayerSpan(&model.layers[index], 1));
      const auto doubles = tensors_of(LayerSpan(&wide.layers[index], 1));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const at::Tensor& values = expected[i].tensor;
        EXPECT_TRUE(at::equal(found[i].tensor, values)) << found[i].name;
        EXPECT_EQ(found[i].tensor.strides(), values.strides()) << found[i].name;
        EXPECT_TRUE(at::equal(doubles[i].tensor.to(values.scalar_type()), values)) << found[i].name;
      }
    }
  }
}

TEST(Workload, TensorsOfOneShapeBeginWithDifferentValues) {
  const Model model = Workload({.model = "mlp", .width = 0.125}).make_model();
  const auto all = parameters(model.layers);  // fc2 to fc7 are alike
  EXPECT_FALSE(at::equal(all[2].tensor, all[4].tensor));
  EXPECT_FALSE(at::equal(all[3].tensor, all[5].tensor));
}

TEST(Workload, GradientsHaveTheStridesOfTheirParameters) {
  const SingleThread single_thread;  // with it the special paths of 1x1 convolutions
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    WorkloadOptions options = small("resnet50");
    options.dtype = dtype;
    const Workload workload(options);
    const Model model = workload.make_model();
    const Batch batch = workload.make_batch(0);
    workload.loss(forward(model.layers, batch.inputs), batch.targets, 1.0).backward();
    for (const auto& [name, tensor] : parameters(model.layers)) {
      EXPECT_EQ(tensor.grad().strides(), tensor.strides()) << name << ' ' << dtype;
    }
  }
}

TEST(Workload, TrainingLowersTheLoss) {
  WorkloadOptions options = small("toy");
  options.width = 2;
  options.loss = Loss::cross_entropy;
  options.optimizer = {.learning_rate = 0.5, .momentum = 0.9};
  const Workload workload(options);
  const Model model = workload.make_model();
  Optimizer optimizer = workload.make_optimizer(parameters(model.layers));
  const Batch batch = workload.make_batch(0);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = workload.loss(forward(model.layers, batch.inputs), batch.targets, 1.0);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    first = step == 0 ? last : first;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST(Workload, BadOptionsAreRefusedInOneLine) {
  const auto message = [](const WorkloadOptions& options) -> std::string {
    try {
      const Workload workload(options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({.batch = 0}), "batch 0 is below 1");
  EXPECT_EQ(message({.image_size = 16}), "image 16x16 is too small for resnet50: at least 32x32");
  EXPECT_EQ(message({.width = -1}),
            "width -1.000000 is not a positive multiple of the model's own");
  EXPECT_EQ(message({.optimizer = {.learning_rate = -1}}), "learning rate must be 0 or more");
  EXPECT_NE(message({.model = "resnet"}).find("unknown model"), std::string::npos);
  EXPECT_NE(message({.classes = -2}).find("classes"), std::string::npos);
}

}  // namespace
}  // namespace stratagem::models::workload_test
