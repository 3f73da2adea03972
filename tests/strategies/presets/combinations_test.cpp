// What can be chosen independently, together: each strategy with each of its ways to shard state,
// in each precision, with and without clipping and several micro-batches, on its smallest mesh.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "bench/oracle/oracle.h"
#include "models/loss_scale.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/registry.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::presets::combinations_test {
namespace {

using strategies::StrategyEntry;

constexpr std::int64_t batch_size = 8;

struct Combination {
  std::string strategy;
  std::string shard;
  std::string precision;  // of --mixed-precision
  bool clips = false;
  bool several_micro_batches = false;
  bool with_replicas = false;
};

std::ostream& operator<<(std::ostream& stream, const Combination& of) {
  return stream << of.strategy << ", shard " << of.shard << ", mixed precision " << of.precision
                << (of.clips ? ", clips" : "")
                << (of.several_micro_batches ? ", several micro-batches" : "")
                << (of.with_replicas ? ", replicas" : "");
}

/// Every way to shard with every precision. Of the four ways to clip and to accumulate each has
/// one, so that each pair of choices occurs, or where nothing can be sharded all.
std::vector<Combination> combinations_of(const StrategyEntry& entry) {
  std::vector<std::string> levels(4, "none");
  if (entry.reads("shard")) levels = {"none", "optimizer", "gradients", "parameters"};
  std::vector<std::string> precisions = {"none"};
  if (entry.reads("mixed_precision")) precisions = {"none", "bfloat16", "float16"};
  std::vector<Combination> all;
  for (const std::string& level : levels) {
    for (const std::string& precision : precisions) {
      const std::size_t index = all.size();
      const bool clips = index % 2 == 1;
      all.push_back({.strategy = entry.name,
                     .shard = level,
                     .precision = precision,
                     .clips = clips,
                     .several_micro_batches = index / 2 % 2 == 1,
                     .with_replicas = level != "none" || clips});
    }
  }
  return all;
}

strategies::Spread spread_of(const StrategyEntry& entry, const Combination& of) {
  strategies::Spread spread;
  spread.sharded = of.shard != "none" || !entry.shards.empty();
  const bool shares_layers = entry.spreads_over("tensor");
  if (entry.one_process) {
    spread.devices_per_rank = 2;
  } else if (shares_layers) {
    spread.tensor_ranks = 2;
    if (of.with_replicas) spread.replicas = 2;
  } else if (entry.spreads_over("data")) {
    spread.replicas = 2;
    if (entry.name == "ddp_model_parallel") spread.devices_per_rank = 2;
  } else if (entry.multi_device) {
    spread.devices_per_rank = 2;
  }
  return spread;
}

strategies::StrategyOptions options_of(const StrategyEntry& entry, const Combination& of) {
  strategies::StrategyOptions options{.split_size = of.several_micro_batches ? 2 : batch_size,
                                      .shard = of.shard};
  if (of.several_micro_batches && entry.reads("accumulation_steps")) options.accumulation_steps = 2;
  return options;
}

models::WorkloadOptions workload_of(const StrategyEntry& entry, const Combination& of) {
  auto options =
      strategies::small_workload(entry.spreads_over("tensor") ? "gpt-tiny" : "toy", batch_size);
  options.mixed = of.precision != "none";
  if (of.clips) options.optimizer.clip_norm = 1e-3;
  options.dynamic_loss_scale = of.precision == "float16";
  if (options.dynamic_loss_scale) options.loss_scale = models::LossScale::highest_at_start;
  return options;
}

/// In float64 the oracle's update, and in the row's own format the exchanges of its costs and about
/// the same loss.
void expect_it_trains(distributed::RankContext& ranks, const Combination& of) {
  const StrategyEntry& entry = strategies::find_strategy(of.strategy);
  models::WorkloadOptions workload = workload_of(entry, of);
  double loss = 0;
  for (const bool in_own_format : {false, true}) {
    if (in_own_format && of.precision == "none") continue;
    if (in_own_format) workload.dtype = of.precision == "float16" ? at::kHalf : at::kBFloat16;
    strategies::RankTraining training(ranks, workload, spread_of(entry, of));
    training.strategy = entry.make(training.rank_context(options_of(entry, of)));
    if (!in_own_format) {
      const auto verdict = bench::compare_with_oracle(*training.strategy, training.workload);
      EXPECT_TRUE(verdict.passed) << of << ": " << verdict.message;
      loss = bench::forward_loss(training.workload, training.workload.make_batch(0),
                                 training.strategy->batch_partition(batch_size));
    }
    training.reset_counts();
    training.strategy->take_counts();
    const auto step = training.strategy->step(training.workload.make_batch(0));
    runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    auto counts = training.counts();
    add(counts, training.strategy->take_counts());
    EXPECT_EQ(distributed::difference_from_costs(counts, training.strategy->costs(batch_size)), "")
        << of;
    if (!in_own_format) continue;
    EXPECT_NEAR(step->loss(), loss, 0.02 * loss) << of;
  }
}

class Combinations : public testing::TestWithParam<std::string> {};

TEST_P(Combinations, Train) {
  const StrategyEntry& entry = strategies::find_strategy(GetParam());
  for (const Combination& of : combinations_of(entry)) {
    SCOPED_TRACE(testing::Message() << of);
    const int ranks = spread_of(entry, of).ranks();
    EXPECT_NO_THROW(runtime::on_ranks(
        ranks, [&](distributed::RankContext& context) { expect_it_trains(context, of); }));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Combinations, testing::ValuesIn(strategies::strategy_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace stratagem::presets::combinations_test
