#include "bench/worker/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "bench/machine/machine.h"
#include "models/loss_scale.h"
#include "tests/bench/worker/small_rows.h"
#include "tests/strategies/rank_threads.h"

namespace stratagem::bench::session_test {
namespace {

/// What the ranks of a row are told, of which the second's groups of layers are of `mebibytes`.
std::vector<std::string> told(double mebibytes) {
  std::vector<std::string> lines(2);
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    const int rank = ranks.info().rank;
    Config row = small_row("zero1");
    row.cut.clear();
    if (rank == 1) row.shard_group_mb = mebibytes;
    try {
      const Session session(row, workload_options(row), {.ranks = &ranks});
    } catch (const std::invalid_argument& error) {
      lines[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return lines;
}

TEST(Session, OfRanksThatWouldCallOtherCollectivesIsRefusedOnAllOfThem) {
  EXPECT_THAT(told(0), testing::Each(""));
  EXPECT_THAT(told(1000),
              testing::Each(testing::HasSubstr("call 1 in group data of device 0 (ranks 0, 1)")));
}

TEST(WorkloadOptions, HaveTheRunsLossScaleAlsoInTheFloat64OfVerification) {
  for (const Dtype dtype : {Dtype("float32"), Dtype("float64")}) {
    Config row = small_row("single");
    row.dtype = dtype;
    EXPECT_EQ(workload_options(row).loss_scale, 1);
    row.mixed_precision = "float16";
    EXPECT_EQ(workload_options(row).loss_scale, models::LossScale::highest_at_start);
    EXPECT_TRUE(workload_options(row).dynamic_loss_scale);
    row.loss_scale = "8";
    EXPECT_EQ(workload_options(row).loss_scale, 8);
    EXPECT_FALSE(workload_options(row).dynamic_loss_scale);
    row.mixed_precision = "bfloat16";
    EXPECT_EQ(workload_options(row).loss_scale, 1);
  }
}

TEST(Session, DevicesHaveTheCoresOfTheirIds) {
  Config row = small_row("pipeline");
  row.device_ids = {1, 0};
  const std::vector<int> all = available_cores();
  EXPECT_THAT(device_options(row, placement_of(row), {}).cores,
              testing::ElementsAre(testing::ElementsAre(all[1 % all.size()]),
                                   testing::ElementsAre(all[0])));
}

}  // namespace
}  // namespace stratagem::bench::session_test
