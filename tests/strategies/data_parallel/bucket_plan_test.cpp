// When the buckets of gradients are full, by hand.
#include <gtest/gtest.h>

#include "models/basic_layers.h"
#include "strategies/data_parallel/replica.h"

namespace stratagem::data_parallel::bucket_plan_test {
namespace {

/// Linear layers of 256 -> 256 -> 512 -> 128. Of each product of the backward pass fc1 has one
/// part, fc2 two and fc3 one.
models::LayerList three_layers() {
  models::LayerList layers;
  layers.push_back(std::make_unique<models::LinearLayer>("fc1", 256, 256));
  layers.push_back(std::make_unique<models::LinearLayer>("fc2", 256, 512));
  layers.push_back(std::make_unique<models::LinearLayer>("fc3", 512, 128));
  return layers;
}

constexpr std::int64_t fc1 = 256 * 256 + 256;  // elements
constexpr std::int64_t fc2 = 256 * 512 + 512;
constexpr std::int64_t fc3 = 512 * 128 + 128;

std::vector<PlannedBucket> plan(const strategies::StrategyOptions& options,
                                bool first_stage = true) {
  return plan_buckets(three_layers(), {4, 256}, first_stage, options);
}

TEST(BucketPlan, ABucketIsFullWhenItsLastLayersBackwardPassIsOver) {
  // fc3 (256 KiB) does not fill the first bucket, fc2 does. The model's first layer computes no
  // gradient of its input: parts of 2, 4 and 1.
  const auto buckets = plan({.bucket_mb = 0.5});
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].bytes, 4 * (fc3 + fc2));
  EXPECT_DOUBLE_EQ(buckets[0].ready, 6.0 / 7);
  EXPECT_EQ(buckets[1].bytes, 4 * fc1);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 1);
}

TEST(BucketPlan, SmallBucketsAreFullLayerByLayer) {
  const auto buckets = plan({.bucket_mb = 0.2});
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_DOUBLE_EQ(buckets[0].ready, 2.0 / 7);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 6.0 / 7);
  EXPECT_DOUBLE_EQ(buckets[2].ready, 1);
}

TEST(BucketPlan, ALaterStageComputesItsInputsGradientToo) {
  const auto buckets = plan({.bucket_mb = 0.5}, /*first_stage=*/false);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_DOUBLE_EQ(buckets[0].ready, 6.0 / 8);
}

TEST(BucketPlan, WithoutOverlapAllIsSentAtTheEnd) {
  const auto buckets = plan({.bucket_mb = 0.5, .overlap = false});
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].bytes, 4 * (fc1 + fc2 + fc3));
  EXPECT_DOUBLE_EQ(buckets[0].ready, 1);
}

TEST(BucketPlan, CompressionHalvesTheBytesThatAreSent) {
  const auto buckets = plan({.bucket_mb = 0.5, .compression = "fp16"});
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].bytes, 2 * (fc3 + fc2));
}

}  // namespace
}  // namespace stratagem::data_parallel::bucket_plan_test
