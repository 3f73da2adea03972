#include "training/loop/not_finite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "strategies/distributed/gather_state.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::training::not_finite_test {
namespace {

using strategies::Spread;

// No rank has all of the state: the first entry is the last rank's.
TEST(NotFinite, EveryRankNamesTheSameEntries) {
  struct Case {
    const char* strategy;
    Spread spread;
  };
  for (const Case& each : std::vector<Case>{{"single", {}},
                                            {"pipeline", {.pipeline_ranks = 2}},
                                            {"zero3", {.replicas = 2, .sharded = true}}}) {
    SCOPED_TRACE(each.strategy);
    runtime::on_ranks(each.spread.ranks(), [&](distributed::RankContext& ranks) {
      strategies::RankTraining training(ranks, strategies::small_workload("toy", 4), each.spread);
      training.strategy =
          strategies::find_strategy(each.strategy).make(training.rank_context({.split_size = 2}));
      strategies::Strategy& own = *training.strategy;
      own.step(training.workload.make_batch(0));
      const auto sum = [&](std::span<double> numbers) {
        distributed::sum_over_ranks(numbers, *training.all, at::kCPU);
      };
      EXPECT_EQ(not_finite_entries(training.workload, own, sum), "");
      strategies::StateDictionary state = own.state();
      std::vector<std::string> parameters;
      for (const auto& [entry, tensor] : state) {
        if (!entry.starts_with("optimizer.") && !entry.starts_with("gradient.")) {
          parameters.push_back(entry);
        }
      }
      for (const std::string& entry : {parameters[1], parameters.back()}) {
        state.at(entry).view({-1})[-1] = std::numeric_limits<double>::quiet_NaN();
      }
      own.load(state);
      training.all->barrier();
      EXPECT_EQ(not_finite_entries(training.workload, own, sum),
                "; not finite: " + parameters[1] + " and 1 more");
    });
  }
}

}  // namespace
}  // namespace stratagem::training::not_finite_test
