#include "strategies/schedules/batch_split.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stratagem::schedules::batch_split_test {
namespace {

TEST(Slices, TheLastMicroBatchTakesTheRemainder) {
  EXPECT_EQ(split_batch(7, 3), (std::vector<Slice>{{0, 3, 0}, {3, 3, 0}, {6, 1, 0}}));
}

TEST(Slices, SharesDifferByOneSampleAtMost) {
  EXPECT_EQ(split_batch_by_count(7, 3), (std::vector<Slice>{{0, 3, 0}, {3, 2, 0}, {5, 2, 0}}));
}

TEST(Slices, EachReplicaCutsItsOwnShare) {
  EXPECT_EQ(split_batch_per_replica(7, 2, 3),
            (std::vector<Slice>{{0, 3, 0}, {3, 1, 0}, {4, 3, 1}}));
  EXPECT_EQ(split_batch_per_replica_by_count(7, 2, 2),
            (std::vector<Slice>{{0, 2, 0}, {2, 2, 0}, {4, 2, 1}, {6, 1, 1}}));
}

TEST(Slices, AReplicaHasNoMoreMicroBatchesThanSamples) {
  EXPECT_EQ(split_batch_per_replica_by_count(3, 2, 3),
            (std::vector<Slice>{{0, 1, 0}, {1, 1, 0}, {2, 1, 1}}));
}

TEST(Slices, AReplicaWithoutSamplesTakesPartAndDoesNotCount) {
  for (const auto& slices :
       {split_batch_per_replica(1, 2, 3), split_batch_per_replica_by_count(1, 2, 3)}) {
    EXPECT_EQ(slices, (std::vector<Slice>{{0, 1, 0}, {0, 1, 1, /*counts=*/false}}));
    EXPECT_EQ(slices[0].weight(1), 1);
    EXPECT_EQ(slices[1].weight(1), 0);
  }
}

TEST(Slices, WeighAsMuchAsTheyHaveOfTheBatch) {
  const Slice slice{.start = 3, .count = 2};
  EXPECT_EQ(slice.weight(8), 0.25);
  EXPECT_EQ(slice.weight(2), 1);
}

TEST(Slices, OfABatchWeighOneTogether) {
  for (const std::int64_t batch : {1, 5, 7, 12}) {
    for (const std::int64_t size : {1, 2, 3}) {
      for (const auto& slices : {split_batch(batch, size), split_batch_by_count(batch, size),
                                 chunk_batch(batch, size), split_batch_per_replica(batch, 3, size),
                                 split_batch_per_replica_by_count(batch, 3, size),
                                 with_equal_counts(split_batch_per_replica(batch, 3, size))}) {
        double sum = 0;
        for (const Slice& slice : slices) sum += slice.weight(batch);
        EXPECT_NEAR(sum, 1, 1e-15) << batch << " samples by " << size;
      }
    }
  }
}

TEST(WithEqualCounts, AddsSlicesThatDoNotCount) {
  const auto uneven = split_batch_per_replica(5, 2, 1);  // three and two
  const auto equal = with_equal_counts(uneven);
  ASSERT_EQ(equal.size(), 6U);
  EXPECT_TRUE(std::equal(uneven.begin(), uneven.end(), equal.begin()));
  EXPECT_EQ(equal.back(), (Slice{.start = 0, .count = 1, .replica = 1, .counts = false}));
  EXPECT_EQ(equal.back().weight(5), 0);
  EXPECT_EQ(with_equal_counts(equal), equal);
}

}  // namespace
}  // namespace stratagem::schedules::batch_split_test
