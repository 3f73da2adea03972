#include "strategies/schedules/batch_split.h"

#include <gtest/gtest.h>

namespace stratagem::schedules {
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
}  // namespace stratagem::schedules
