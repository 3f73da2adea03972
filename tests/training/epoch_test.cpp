#include "training/epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

namespace stratagem::training::epoch_test {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> in_order(std::int64_t samples) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Anything but the identity.
std::vector<std::int64_t> in_some_order(std::int64_t samples) {
  std::vector<std::int64_t> order = in_order(samples);
  std::ranges::reverse(order);
  std::rotate(order.begin(), order.begin() + samples / 3, order.end());
  return order;
}

/// What the ranks of a DistributedSampler give a loader of `batch / replicas` samples in each of
/// its steps: rank by rank the indices padded to equal counts, cut into batches.
std::vector<BatchIndices> of_distributed_sampler(std::vector<std::int64_t> order,
                                                 const EpochShape& shape) {
  const auto given = order.size();
  while (order.size() % static_cast<std::size_t>(shape.replicas) != 0) {
    order.push_back(order[order.size() - given]);
  }
  const std::size_t own = static_cast<std::size_t>(shape.batch / shape.replicas);
  std::vector<BatchIndices> batches;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(shape.replicas); ++rank) {
    std::size_t taken = 0;
    for (std::size_t place = rank; place < order.size();
         place += static_cast<std::size_t>(shape.replicas)) {
      const std::size_t step = taken++ / own;
      if (batches.size() <= step) batches.emplace_back();
      batches[step].push_back(order[place]);
    }
  }
  return batches;
}

TEST(Epoch, StepsAreTheUnionOfWhatTheRanksOfADistributedSamplerTake) {
  for (const std::int64_t replicas : {1, 2, 3, 4}) {
    for (const std::int64_t per_replica : {1, 2, 5}) {
      for (std::int64_t samples = 1; samples <= 40; ++samples) {
        const EpochShape shape{
            .samples = samples, .batch = replicas * per_replica, .replicas = replicas};
        const auto order = in_some_order(samples);
        const auto batches = batches_of_an_epoch(order, shape);
        EXPECT_EQ(batches, of_distributed_sampler(order, shape))
            << samples << " samples, " << replicas << " replicas of " << per_replica;
        EXPECT_EQ(static_cast<std::int64_t>(batches.size()), steps_of_an_epoch(shape));
        EXPECT_EQ(static_cast<std::int64_t>(batches.back().size()), last_batch(shape));
      }
    }
  }
}

TEST(Epoch, ExactTakesEachSampleOnce) {
  for (const std::int64_t replicas : {1, 2, 3, 4}) {
    for (std::int64_t samples = 1; samples <= 40; ++samples) {
      const EpochShape shape{
          .samples = samples, .batch = 3 * replicas, .replicas = replicas, .tail = Tail::exact};
      std::vector<std::int64_t> trained;
      for (const auto& batch : batches_of_an_epoch(in_some_order(samples), shape)) {
        trained.insert(trained.end(), batch.begin(), batch.end());
      }
      std::ranges::sort(trained);
      EXPECT_EQ(trained, in_order(samples));
    }
  }
}

TEST(Epoch, DropTrainsWholeBatchesAlone) {
  const EpochShape shape{.samples = 10, .batch = 4, .replicas = 2, .tail = Tail::drop};
  EXPECT_THAT(batches_of_an_epoch(in_order(10), shape),
              ElementsAre(ElementsAre(0, 2, 1, 3), ElementsAre(4, 6, 5, 7)));
  EXPECT_THROW(steps_of_an_epoch({.samples = 3, .batch = 4, .tail = Tail::drop}),
               std::invalid_argument);
}

TEST(Epoch, HasTheStepsOfTheExamples) {
  // 1000 samples, 32 on each of one and two ranks; the last step trains 8, and 20 on each.
  EXPECT_EQ(steps_of_an_epoch({.samples = 1000, .batch = 32}), 32);
  EXPECT_EQ(batches_of_an_epoch(in_order(1000), {.samples = 1000, .batch = 32}).back().size(), 8U);
  const EpochShape two{.samples = 1000, .batch = 64, .replicas = 2};
  EXPECT_EQ(steps_of_an_epoch(two), 16);
  EXPECT_EQ(batches_of_an_epoch(in_order(1000), two).back().size(), 40U);
  // 2048 samples, 32 on each of one and four ranks.
  EXPECT_EQ(steps_of_an_epoch({.samples = 2048, .batch = 32}), 64);
  EXPECT_EQ(steps_of_an_epoch({.samples = 2048, .batch = 128, .replicas = 4}), 16);
  // 100 samples in batches of 30 on one device or several of one process.
  const auto batches = batches_of_an_epoch(in_order(100), {.samples = 100, .batch = 30});
  ASSERT_EQ(batches.size(), 4U);
  EXPECT_EQ(batches.back().size(), 10U);
}

TEST(Epoch, AnEmptySetIsRefused) {
  EXPECT_THROW(steps_of_an_epoch({.samples = 0, .batch = 4}), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::training::epoch_test
