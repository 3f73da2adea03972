// Pipelines whose stages are spread over ranks, alone and with replicas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/presets/staged.h"
#include "strategies/schedules/batch_split.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages {
namespace {

using distributed::RankContext;
using schedules::ActionKind;

struct Case {
  std::string model;
  strategies::Spread spread;
  std::string schedule = "1f1b";
  std::int64_t batch = 8;
  std::int64_t split = 2;
  std::vector<std::string> cut = {};
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.model << ", replicas " << of.spread.replicas << ", pipeline ranks "
             << of.spread.pipeline_ranks << ", devices a rank " << of.spread.devices_per_rank
             << ", schedule " << of.schedule << ", batch " << of.batch << ", split " << of.split;
}

std::unique_ptr<strategies::Strategy> make(const strategies::StrategyContext& context,
                                           const Case& of) {
  return presets::make_staged(context, of.schedule, [of](std::int64_t samples) {
    return schedules::split_batch_per_replica(samples, of.spread.replicas, of.split);
  });
}

strategies::StrategyOptions options_of(const Case& of) {
  strategies::StrategyOptions options;
  options.cut = of.cut;
  return options;
}

void verify(Case of, bool in_order) {
  of.spread.in_order = in_order;
  SCOPED_TRACE(testing::Message() << of << (in_order ? ", in order" : ""));
  std::mutex mutex;
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    training.strategy = make(training.rank_context(options_of(of)), of);
    const auto found = bench::compare_with_oracle(*training.strategy, training.workload);
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(found.passed) << "rank " << training.rank << ": " << found.message;
  });
}

/// Over Gloo, and over a backend that behaves as NCCL does.
void verify(const Case& of) {
  for (const bool in_order : {false, true}) verify(of, in_order);
}

TEST(RankPipeline, EqualsOneDevice) {
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    for (const char* model : {"toy", "mlp", "resnet18"}) {
      verify({.model = model, .spread = {.pipeline_ranks = 2}, .schedule = schedule});
    }
  }
  verify({.model = "resnet18", .spread = {.pipeline_ranks = 3}, .split = 3});
  verify({.model = "resnet18", .spread = {.pipeline_ranks = 2, .devices_per_rank = 2}});
}

TEST(RankPipeline, WithReplicasEqualsOneDeviceThatSeesTheSameShards) {
  verify({.model = "mlp", .spread = {.replicas = 2, .devices_per_rank = 2}});
  verify({.model = "resnet18", .spread = {.replicas = 2, .devices_per_rank = 2}});
  verify({.model = "resnet18",
          .spread = {.replicas = 2, .devices_per_rank = 2},
          .schedule = "naive",
          .split = 4});
  verify({.model = "resnet18",
          .spread = {.replicas = 2, .pipeline_ranks = 2},
          .batch = 11,
          .split = 3});
}

/// The state after two steps.
strategies::StateDictionary trained(strategies::Strategy& strategy, const models::Batch& batch) {
  strategy.step(batch);
  strategy.step(batch);
  return strategy.state();
}

TEST(RankPipeline, IsTheOneOfAProcessBitForBit) {
  const Case of{.model = "resnet18", .spread = {.pipeline_ranks = 2}};
  strategies::Training whole(strategies::small_workload(of.model, of.batch), 2);
  const models::Batch batch = whole.workload.make_batch(0);
  strategies::StrategyOptions options;
  options.schedule = of.schedule;
  whole.strategy = make(whole.context(options), of);
  const strategies::StateDictionary expected = trained(*whole.strategy, batch);
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    training.strategy = make(training.rank_context(), of);
    const strategies::StateDictionary found = trained(*training.strategy, batch);
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      EXPECT_TRUE(at::equal(found.at(name), tensor)) << name << " on rank " << training.rank;
    }
  });
}

TEST(RankPipeline, CommunicatesExactlyWhatItsCostsSay) {
  for (const strategies::Spread spread :
       {strategies::Spread{.pipeline_ranks = 2}, strategies::Spread{.pipeline_ranks = 3},
        strategies::Spread{.replicas = 2, .pipeline_ranks = 2},
        strategies::Spread{.replicas = 2, .devices_per_rank = 2}}) {
    const Case of{.model = "resnet18", .spread = spread};
    SCOPED_TRACE(testing::Message() << of);
    runtime::on_ranks(spread.ranks(), [&](distributed::RankContext& ranks) {
      strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                        spread);
      training.strategy = make(training.rank_context(), of);
      const auto batch = training.workload.make_batch(0);
      for (int step = 0; step < 3; ++step) {
        if (step == 2) training.reset_counts();
        training.strategy->step(batch);
        runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
      }
      EXPECT_EQ(
          distributed::difference_from_costs(training.counts(), training.strategy->costs(of.batch)),
          "");
    });
  }
}

TEST(RankPipeline, ARankHoldsAndRunsItsOwnStagesOnly) {
  const Case of{.model = "mlp", .spread = {.pipeline_ranks = 2}};
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, strategies::small_workload(of.model, of.batch),
                                      of.spread);
    training.strategy = make(training.rank_context(), of);
    const auto step = training.strategy->step(training.workload.make_batch(0));
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    for (const auto& entry : step->execution()) {
      EXPECT_EQ(entry.action.stage, training.rank);
      EXPECT_EQ(entry.device, 0);
    }
    EXPECT_GT(step->loss(), 0) << "also where the last stage is not";
  });
}

}  // namespace
}  // namespace stratagem::stages
