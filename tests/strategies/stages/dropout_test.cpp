// Dropout under every strategy: the update of one device, whose masks depend on samples alone.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/registry.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::dropout_test {
namespace {

struct Case {
  std::string strategy;
  strategies::Spread spread = {};
  strategies::StrategyOptions options = {};
};

struct Found {
  strategies::StateDictionary state;
  double loss = 0;
  double evaluated = 0;
};

/// Trains three steps; returns what rank 0 has.
Found trained(const Case& of, double rate, std::int64_t first_batch = 0) {
  models::WorkloadOptions options = strategies::small_workload("gpt-tiny", 4);
  options.dropout = rate;
  strategies::Spread spread = of.spread;
  spread.sharded = of.strategy.starts_with("zero");
  Found found;
  runtime::on_ranks(spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, options, spread);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    Found own;
    for (int step = 0; step < 3; ++step) {
      models::Batch batch = training.workload.make_batch(step);
      batch.number += first_batch;
      own.loss = training.strategy->step(batch)->loss();
    }
    own.evaluated = training.strategy->evaluate(training.workload.make_batch(0)).loss;
    own.state = training.strategy->state();
    if (training.rank == 0) found = own;
  });
  return found;
}

double largest_difference(const Found& one, const Found& other) {
  double worst = 0;
  for (const auto& [name, tensor] : one.state) {
    const double most = tensor.abs().max().item<double>();
    const double apart = (tensor - other.state.at(name)).abs().max().item<double>();
    worst = std::max(worst, apart / std::max(most, 1e-12));
  }
  return worst;
}

TEST(DropoutOfStrategies, ComputesTheUpdateOfOneDevice) {
  const std::vector<Case> cases = {
      {"single", {}, {.accumulation_steps = 2}},
      {"single", {}, {.accumulation_steps = 2, .recompute = "full"}},
      {"model_parallel", {.devices_per_rank = 2}},
      {"pipeline", {.devices_per_rank = 2}, {.split_size = 1, .recompute = "full"}},
      {"pipeline", {.pipeline_ranks = 2}, {.split_size = 1, .schedule = "zb_h1"}},
      {"pipeline",
       {.devices_per_rank = 2},
       {.split_size = 1, .schedule = "zb_v", .recompute = "selective"}},
      {"data_parallel", {.devices_per_rank = 2}},
      {"ddp", {.replicas = 2}, {.accumulation_steps = 2}},
      {"zero3", {.replicas = 2}, {.recompute = "full"}},
      {"tensor_parallel", {.tensor_ranks = 2}},
      {"sequence_parallel", {.tensor_ranks = 2}, {.accumulation_steps = 2}},
      {"sequence_parallel", {.replicas = 2, .tensor_ranks = 2}}};
  const Found expected = trained({"single"}, 0.2);
  for (const Case& each : cases) {
    SCOPED_TRACE(each.strategy + " " + std::string(each.options.schedule));
    const Found found = trained(each, 0.2);
    EXPECT_NEAR(found.loss, expected.loss, 1e-10);
    EXPECT_NEAR(found.evaluated, expected.evaluated, 1e-10);
    EXPECT_LT(largest_difference(expected, found), 1e-9);
  }
}

TEST(DropoutOfStrategies, MasksChangeWithTheRateAndTheNumberOfTheBatch) {
  const Found usual = trained({"single"}, 0.2);
  EXPECT_EQ(largest_difference(usual, trained({"single"}, 0.2)), 0);
  EXPECT_GT(largest_difference(usual, trained({"single"}, 0)), 1e-6);
  EXPECT_GT(largest_difference(usual, trained({"single"}, 0.2, 100)), 1e-6);
}

}  // namespace
}  // namespace stratagem::stages::dropout_test
