#include "strategies/distributed/same_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "strategies/registry.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::distributed::same_calls_test {
namespace {

using strategies::StrategyOptions;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

/// What each of two ranks is told whose options are these.
std::vector<std::string> told(const std::string& strategy, const StrategyOptions& first,
                              const StrategyOptions& second) {
  std::vector<std::string> lines(2);
  runtime::on_ranks(2, [&](RankContext& ranks) {
    const int rank = ranks.info().rank;
    strategies::RankTraining training(ranks, strategies::small_workload("gpt-tiny", 4),
                                      {.replicas = 2, .sharded = true});
    training.strategy =
        strategies::find_strategy(strategy).make(training.rank_context(rank == 0 ? first : second));
    try {
      require_same_calls(ranks, training.strategy->costs(4).calls);
    } catch (const std::invalid_argument& error) {
      lines[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return lines;
}

TEST(SameCalls, AreWhatRanksOfTheSameOptionsMake) {
  for (const char* strategy : {"ddp", "zero1", "zero2", "zero3"}) {
    EXPECT_THAT(told(strategy, {}, {}), Each("")) << strategy;
  }
}

TEST(SameCalls, ARankWithAnotherOptionIsToldToAllRanksAlike) {
  const auto line = [](const char* call, const char* first, const char* second) {
    return Each(
        AllOf(HasSubstr("rank 0: call " + std::string(call) + " in group data0 (ranks 0, 1)"),
              HasSubstr(first), HasSubstr(std::string("that of rank 1 is ") + second)));
  };
  EXPECT_THAT(told("zero3", {}, {.prefetch = 2}),
              line("4", "is unshard_wait of stage 1", "unshard of stage 2"));
  EXPECT_THAT(told("zero1", {}, {.shard_group_mb = 1000}),
              line("1", "is unshard of stage 0", "unshard of stage 0"));
  EXPECT_THAT(told("zero2", {}, {.accumulation_steps = 2}), Each(HasSubstr("that of rank 1 is")));
  EXPECT_THAT(told("ddp", {}, {.bucket_mb = 0.01}), Each(HasSubstr("that of rank 1 is")));
}

}  // namespace
}  // namespace stratagem::distributed::same_calls_test
