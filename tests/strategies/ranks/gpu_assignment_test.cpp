#include "strategies/ranks/gpu_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <stdexcept>

namespace stratagem::ranks::gpu_assignment_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A rank that sees the GPUs first .. first + count - 1 of a host, as its numbers 0, 1, ...
VisibleGpus sees(const std::string& host, int first, int count) {
  VisibleGpus seen{.host = host, .identities = {}};
  for (int gpu = first; gpu < first + count; ++gpu) {
    seen.identities.push_back(fmt::format("GPU-{}", gpu));  // other hosts have the same
  }
  return seen;
}

std::string refusal(const std::vector<VisibleGpus>& ranks, std::int64_t devices_per_rank,
                    const std::vector<std::int64_t>& device_ids = {}) {
  try {
    assign_gpus(ranks, devices_per_rank, device_ids);
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(GpuAssignment, ARankOfSeveralHostsCountsTheGpusOfItsOwn) {
  std::vector<VisibleGpus> ranks(8, sees("n0", 0, 8));
  ranks.insert(ranks.end(), 8, sees("n1", 0, 8));
  const auto assigned = assign_gpus(ranks, 1, {});
  ASSERT_EQ(assigned.size(), 16U);
  for (int rank = 0; rank < 16; ++rank) {
    EXPECT_THAT(assigned[static_cast<std::size_t>(rank)], ElementsAre(rank % 8));
  }
}

TEST(GpuAssignment, RanksThatSeeAllGpusTakeThemInOrder) {
  EXPECT_THAT(assign_gpus({2, sees("n0", 0, 4)}, 2, {}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(assign_gpus({sees("n0", 0, 4)}, 3, {}), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(GpuAssignment, RanksOfTwoHostsMayTakeTurns) {
  EXPECT_THAT(assign_gpus({sees("n0", 0, 2), sees("n1", 0, 2), sees("n0", 0, 2)}, 1, {}),
              ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1)));
}

TEST(GpuAssignment, UnderAMaskEveryRanksGpuIsItsFirst) {
  EXPECT_THAT(assign_gpus({sees("n0", 0, 1), sees("n0", 1, 1), sees("n1", 0, 1)}, 1, {}),
              ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(0)));
  EXPECT_THAT(assign_gpus({sees("n0", 0, 2), sees("n0", 2, 2)}, 2, {}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1)));
}

TEST(GpuAssignment, MasksThatOverlapLeaveWhatNoRankHas) {
  EXPECT_THAT(assign_gpus({sees("n0", 0, 2), sees("n0", 0, 3)}, 1, {}),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_EQ(refusal({sees("n0", 0, 1), sees("n0", 0, 1)}, 1),
            "--device cuda: rank 1 on n0 needs 1 GPU, but 0 of its 1 visible GPUs are free; "
            "repeat a number in --device-ids, as in 0+0, to share a GPU with --backend gloo");
}

TEST(GpuAssignment, TooFewNameTheRankAndItsHost) {
  EXPECT_THAT(refusal({sees("n0", 0, 2), sees("n1", 0, 1)}, 2),
              HasSubstr("rank 1 on n1 needs 2 GPUs, but 1 of its 1 visible GPUs is free"));
  EXPECT_EQ(refusal({sees("n0", 0, 2)}, 4),
            "--device cuda: 4 devices need a GPU each, and there are 2 GPUs; repeat a number in "
            "--device-ids, as in 0+0, to share a GPU");
  EXPECT_THAT(refusal({sees("n0", 0, 1), {.host = "n1", .identities = {}}}, 1),
              HasSubstr("rank 1 on n1 needs 1 GPU, but 0 of its 0 visible GPUs are free"));
}

TEST(GpuAssignment, RanksThatShareAGpuAreRefusedForNccl) {
  const std::vector<VisibleGpus> masked = {sees("n0", 0, 1), sees("n0", 1, 1), sees("n1", 0, 1)};
  EXPECT_NO_THROW(require_gpus_of_their_own(masked, {{0}, {0}, {0}}));
  EXPECT_NO_THROW(require_gpus_of_their_own({sees("n0", 0, 1)}, {{0, 0}}));
  const std::vector<VisibleGpus> overlapping = {sees("n0", 0, 2), sees("n0", 1, 1)};
  try {
    require_gpus_of_their_own(overlapping, {{1}, {0}});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "--backend nccl: ranks 0 and 1 share a GPU of n0 (GPU 1 of rank 0 is GPU 0 of rank 1), "
        "but NCCL needs one for each rank; use --backend gloo");
  }
}

TEST(GpuAssignment, IdsAreTheRanksOwnNumbersAndMayBeShared) {
  EXPECT_THAT(assign_gpus({2, sees("n0", 0, 2)}, 1, {0, 0}),
              ElementsAre(ElementsAre(0), ElementsAre(0)));
  EXPECT_THAT(assign_gpus({sees("n0", 0, 2), sees("n1", 0, 2)}, 2, {1, 0, 0, 1}),
              ElementsAre(ElementsAre(1, 0), ElementsAre(0, 1)));
  EXPECT_EQ(refusal({sees("n0", 0, 2), sees("n1", 0, 1)}, 1, {1, 1}),
            "--device-ids: GPU 1 does not exist for rank 1 on n1; there is 1 GPU");
  EXPECT_EQ(refusal({sees("n0", 0, 2)}, 2, {0, 5}),
            "--device-ids: GPU 5 does not exist; there are 2 GPUs");
}

}  // namespace
}  // namespace stratagem::ranks::gpu_assignment_test
