#include "training/loop/batch_maker.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/datasets/dataset.h"

namespace stratagem::training::batch_maker_test {
namespace {

const std::vector<std::int64_t> chosen = {5, 2, 7, 2};

models::WorkloadOptions work(const char* model, models::Loss loss) {
  models::WorkloadOptions options;
  options.model = model;
  options.batch = 4;
  options.loss = loss;
  options.dtype = at::kDouble;
  return options;
}

datasets::DatasetPointer random_set(bool real) {
  return datasets::make_datasets({.samples = 8, .outputs = 5, .real_targets = real}, "").training;
}

models::Batch filled(const models::WorkloadOptions& options, const datasets::Dataset& data,
                     const std::vector<schedules::Slice>& wanted) {
  const models::Workload workload(options);
  BatchMaker maker(workload, data, {.slots = 2, .largest = 4});
  maker.fill(1, chosen, wanted, 0);
  return maker.batch(1, 4);
}

TEST(BatchMaker, VectorsAreThoseOfTheSamples) {
  const auto data = random_set(true);
  models::WorkloadOptions options = work("toy", models::Loss::mse);
  options.targets = models::Targets::real;
  const models::Batch batch = filled(options, *data, {{0, 4}});
  ASSERT_EQ(batch.inputs.scalar_type(), at::kDouble);
  for (std::int64_t row = 0; row < 4; ++row) {
    const datasets::Sample sample = data->sample(chosen[static_cast<std::size_t>(row)]);
    EXPECT_EQ(batch.inputs[row][3].item<float>(), sample.values[3]);
    EXPECT_EQ(batch.targets[row][4].item<float>(), sample.targets[4]);
  }
}

TEST(BatchMaker, ClassesAreRowsOfOneOneForTheSquaredError) {
  const auto data = random_set(false);
  const models::Batch rows = filled(work("toy", models::Loss::mse), *data, {{0, 4}});
  const models::Batch labels = filled(work("toy", models::Loss::cross_entropy), *data, {{0, 4}});
  EXPECT_TRUE(rows.targets.sum(1).eq(1).all().item<bool>());
  EXPECT_TRUE(rows.targets.argmax(1).equal(labels.targets));
  EXPECT_EQ(labels.targets[0].item<std::int64_t>(), data->sample(5).label);
}

TEST(BatchMaker, InMixedPrecisionTargetsAreOfTheLosssFormat) {
  for (const bool real : {false, true}) {
    models::WorkloadOptions options = work("toy", models::Loss::mse);
    options.dtype = at::kHalf;
    options.mixed = true;
    if (real) options.targets = models::Targets::real;
    const models::Batch batch = filled(options, *random_set(real), {{0, 4}});
    EXPECT_EQ(batch.inputs.scalar_type(), at::kHalf);
    EXPECT_EQ(batch.targets.scalar_type(), at::kFloat);
  }
}

TEST(BatchMaker, ARankReadsItsOwnRowsAlone) {
  const auto data = random_set(false);
  const models::Batch whole = filled(work("toy", models::Loss::mse), *data, {{0, 4}});
  const models::Batch part = filled(work("toy", models::Loss::mse), *data, {{2, 1}, {3, 1}});
  EXPECT_TRUE(part.inputs.narrow(0, 0, 2).eq(0).all().item<bool>());
  EXPECT_TRUE(part.inputs.narrow(0, 2, 2).equal(whole.inputs.narrow(0, 2, 2)));
  EXPECT_TRUE(part.targets.narrow(0, 2, 2).equal(whole.targets.narrow(0, 2, 2)));
}

TEST(BatchMaker, TokensAreFollowedByTheirTargets) {
  const std::string alphabet = "abcdefghijklmnopqrstuvwxyz";
  std::string characters;
  while (characters.size() < 2000) characters += alphabet;
  const auto data = datasets::make_datasets({.name = "text", .sequence = 9}, characters).training;
  models::WorkloadOptions options = work("gpt-tiny", models::Loss::cross_entropy);
  options.sequence_length = 9;
  const models::Batch batch = filled(options, *data, {{0, 4}});
  EXPECT_EQ(batch.inputs.sizes(), (at::IntArrayRef{4, 9}));
  EXPECT_EQ(batch.inputs[0][0].item<std::int64_t>(), characters[45]);
  EXPECT_TRUE(batch.inputs.narrow(1, 1, 8).equal(batch.targets.narrow(1, 0, 8)));
}

TEST(BatchMaker, ImagesAreTheSameInEitherMemoryFormat) {
  const auto data = datasets::make_datasets({.name = "shapes", .samples = 8}, "").training;
  models::WorkloadOptions options = work("resnet18", models::Loss::cross_entropy);
  options.image_size = 32;
  options.classes = 10;
  options.dtype = at::kFloat;
  const models::Batch last = filled(options, *data, {{0, 4}});
  options.format = at::MemoryFormat::Contiguous;
  const models::Batch first = filled(options, *data, {{0, 4}});
  EXPECT_TRUE(last.inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(first.inputs.is_contiguous());
  EXPECT_TRUE(first.inputs.equal(last.inputs));
  EXPECT_NEAR(first.inputs[0][1][2][3].item<double>(),
              (data->sample(5).bytes[1024 + 2 * 32 + 3] / 255.0 - 0.5) / 0.25, 1e-6);
}

}  // namespace
}  // namespace stratagem::training::batch_maker_test
