#include "bench/config/verification_scope.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stratagem::bench::verification_scope_test {
namespace {

Config row_of(std::int64_t batch, std::int64_t split, std::int64_t image = 128) {
  Config row;
  row.strategy = "pipeline";
  row.global_batch_size = batch;
  row.split_size = split;
  row.image_size = image;
  return row;
}

std::vector<std::int64_t> micro_batches(std::int64_t batch, std::int64_t split) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t start = 0; start < batch; start += split) {
    sizes.push_back(std::min(split, batch - start));
  }
  return sizes;
}

VerificationScope resnet(std::int64_t batch, std::int64_t split, std::int64_t image = 128) {
  return shrink(row_of(batch, split, image), micro_batches(batch, split),
                {.has_images = true, .has_batch_norm = true});
}

VerificationScope mlp(std::int64_t batch, std::int64_t split) {
  return shrink(row_of(batch, split), micro_batches(batch, split), {});
}

TEST(VerificationScope, KeepsTheNumberOfMicroBatchesAndTheRemainder) {
  for (const bool batch_norm : {true, false}) {
    for (std::int64_t batch = 1; batch <= 50; ++batch) {
      for (std::int64_t split = 1; split <= batch; ++split) {
        const auto before = micro_batches(batch, split);
        const Config small = shrink(row_of(batch, split), before,
                                    {.has_images = batch_norm, .has_batch_norm = batch_norm})
                                 .config;
        const auto after = micro_batches(small.global_batch_size, small.split_size);
        EXPECT_EQ(before.size(), after.size()) << batch << " in " << split;
        EXPECT_EQ(before.back() < before.front(), after.back() < after.front())
            << batch << " in " << split;
        EXPECT_LE(small.global_batch_size, batch);
      }
    }
  }
}

TEST(VerificationScope, LeavesEightElementsToEveryBatchNorm) {
  for (std::int64_t batch = 1; batch <= 50; ++batch) {
    for (std::int64_t split = 1; split <= batch; ++split) {
      for (const std::int64_t image : {128, 32, 40}) {
        const Config small = resnet(batch, split, image).config;
        const auto sizes = micro_batches(small.global_batch_size, small.split_size);
        const std::int64_t positions = small.image_size / 32;  // a side of the last feature map
        EXPECT_GE(sizes.back() * positions * positions, 8) << batch << " in " << split;
        EXPECT_EQ(small.image_size % 32, 0);
      }
    }
  }
}

TEST(VerificationScope, GivesABatchNormOfFixedImagesItsElementsBySamples) {
  const auto samples = [](std::int64_t positions) {
    return shrink(row_of(4, 2), micro_batches(4, 2),
                  {.has_batch_norm = true, .positions = positions})
        .config.split_size;
  };
  EXPECT_EQ(samples(1), 8);
  EXPECT_EQ(samples(3), 3);
  EXPECT_EQ(samples(49), 2);
  const VerificationScope scope =
      shrink(row_of(4, 2), micro_batches(4, 2), {.has_batch_norm = true, .positions = 1});
  EXPECT_EQ(scope.config.global_batch_size, 16);
  EXPECT_EQ(scope.config.image_size, 128);
  EXPECT_EQ(scope.width, 1);
}

TEST(VerificationScope, NeverEnlargesTheBatch) {
  EXPECT_EQ(resnet(2, 2).config.global_batch_size, 2);
  EXPECT_EQ(resnet(3, 2).config.global_batch_size, 3);
  EXPECT_EQ(resnet(3, 2).config.split_size, 2);
}

TEST(VerificationScope, KeepsTheRestOfTheRow) {
  Config row = row_of(48, 12);
  row.schedule = "gpipe";
  row.cut = {"layer2"};
  row.devices = 2;
  row.loss = "cross_entropy";
  row.weight_decay = 0.01;
  row.kernels = "reference";
  const Config small =
      shrink(row, micro_batches(48, 12), {.has_images = true, .has_batch_norm = true}).config;
  EXPECT_EQ(small.strategy, row.strategy);
  EXPECT_EQ(small.model, row.model);
  EXPECT_EQ(small.schedule, row.schedule);
  EXPECT_EQ(small.cut, row.cut);
  EXPECT_EQ(small.devices, row.devices);
  EXPECT_EQ(small.loss, row.loss);
  EXPECT_EQ(small.weight_decay, row.weight_decay);
  EXPECT_EQ(small.memory_format, row.memory_format);
  EXPECT_EQ(small.kernels, row.kernels);
}

TEST(VerificationScope, ComputesInFloat64WithAnUpdateThatShows) {
  Config row = row_of(48, 12);
  row.dtype = "bfloat16";
  row.learning_rate = 1e-9;
  const auto of = [&](decltype(Config::optimizer) optimizer) {
    row.optimizer = optimizer;
    return shrink(row, micro_batches(48, 12), {.has_images = true, .has_batch_norm = true}).config;
  };
  EXPECT_EQ(of("sgd").dtype.name(), "float64");
  EXPECT_EQ(of("sgd").learning_rate, 0.1);
  EXPECT_EQ(of("sgd").momentum, 0.9);
  EXPECT_EQ(of("adam").learning_rate, 1e-3);
  EXPECT_EQ(of("adamw").learning_rate, 1e-3);
  EXPECT_EQ(of("adamw").clip_gradients, 0);
  row.clip_gradients = 1e6;  // a bound that would change nothing
  EXPECT_EQ(of("adamw").clip_gradients, 1e-3);
}

TEST(VerificationScope, SaysWhatShrank) {
  EXPECT_EQ(resnet(48, 12).text, "batch 48 -> 8, image 128 -> 64, width x0.125");
  EXPECT_EQ(resnet(48, 20).text, "batch 48 -> 8, image 128 -> 64, width x0.125");
  EXPECT_EQ(resnet(48, 12, 64).text, "batch 48 -> 8, width x0.125");
  EXPECT_EQ(resnet(2, 2, 64).text, "width x0.125");
  EXPECT_EQ(resnet(2, 2, 32).text, "image 32 -> 64, width x0.125");
  EXPECT_EQ(resnet(48, 12).width, 0.125);
  EXPECT_EQ(mlp(48, 12).text, "batch 48 -> 4");
  EXPECT_EQ(mlp(48, 20).text, "batch 48 -> 5");
  EXPECT_EQ(mlp(48, 48).text, "batch 48 -> 4");
  EXPECT_EQ(mlp(4, 1).text, "full size");
  EXPECT_EQ(mlp(4, 1).width, 1.0);
}

Config row_on(decltype(Config::device) device, bool tf32, Dtype dtype = "float32") {
  Config row;
  row.device = device;
  row.tf32 = tf32;
  row.dtype = dtype;
  return row;
}

double tolerance_of(const Config& row) { return first_loss_tolerance(row, false); }

TEST(FirstLossTolerance, FollowsTheBitsThatProductsKeep) {
  EXPECT_EQ(tolerance_of(row_on("cpu", false)), 1e-4);
  EXPECT_EQ(tolerance_of(row_on("cuda", false)), 1e-4);
  EXPECT_EQ(tolerance_of(row_on("cuda", true)), tolerance_of(row_on("cuda", false, "float16")));
  EXPECT_EQ(tolerance_of(row_on("cpu", true)), 1e-4) << "CPUs have no TF32";
  EXPECT_EQ(tolerance_of(row_on("cuda", true, "float64")), 1e-9);
  EXPECT_EQ(tolerance_of(row_on("cuda", true, "bfloat16")), 5e-2);
  EXPECT_EQ(first_loss_tolerance(row_on("cpu", false), true), 1e-2);
}

TEST(AmplifiesRoundings, WhereABatchNormHasFewerThanEightNumbers) {
  const ScopeTraits resnet{.has_images = true, .has_batch_norm = true};
  const auto of = [&](std::int64_t image, std::int64_t samples, const ScopeTraits& traits) {
    Config row;
    row.image_size = image;
    return amplifies_roundings(row, {8, samples}, traits);
  };
  EXPECT_FALSE(of(32, 8, resnet));
  EXPECT_TRUE(of(32, 7, resnet));
  EXPECT_FALSE(of(64, 2, resnet));
  EXPECT_TRUE(of(64, 1, resnet));
  EXPECT_FALSE(of(32, 1, {})) << "without a BatchNorm";
}

}  // namespace
}  // namespace stratagem::bench::verification_scope_test
