#include "strategies/slices.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stratagem::strategies {
namespace {

TEST(Slices, TheLastMicroBatchTakesTheRemainder) {
  EXPECT_EQ(split_batch(7, 3), (std::vector<Slice>{{0, 3, 0}, {3, 3, 0}, {6, 1, 0}}));
}

TEST(Slices, SharesDifferByOneSampleAtMost) {
  EXPECT_EQ(share_batch(7, 3), (std::vector<Slice>{{0, 3, 0}, {3, 2, 0}, {5, 2, 0}}));
}

TEST(Slices, EachReplicaCutsItsOwnShare) {
  EXPECT_EQ(split_shares(7, 2, 3), (std::vector<Slice>{{0, 3, 0}, {3, 1, 0}, {4, 3, 1}}));
  EXPECT_EQ(share_shares(7, 2, 2),
            (std::vector<Slice>{{0, 2, 0}, {2, 2, 0}, {4, 2, 1}, {6, 1, 1}}));
}

TEST(Slices, FewerSamplesThanPartsAreRefused) {
  EXPECT_THROW(share_batch(1, 2), std::invalid_argument);
  EXPECT_THROW(share_shares(1, 2, 1), std::invalid_argument);
  EXPECT_THROW(share_shares(4, 2, 3), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::strategies
