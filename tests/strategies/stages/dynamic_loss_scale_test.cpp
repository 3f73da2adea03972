// Float16 with a dynamic loss scale, in every strategy: steps that are skipped, and steps at which
// the scale grows.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "models/loss_scale.h"
#include "strategies/registry.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::dynamic_loss_scale_test {
namespace {

using models::LossScale;

constexpr std::int64_t batch_size = 4;
constexpr double first_scale = 256;

struct Case {
  std::string name;
  std::string strategy;
  strategies::Spread spread = {};
  strategies::StrategyOptions options = {};
};

void PrintTo(const Case& of, std::ostream* stream) { *stream << of.name; }

const std::vector<Case>& cases() {
  constexpr double a_layer_a_group = 1e-6;
  static const std::vector<Case> all = {
      {"single", "single", {}, {.shard_group_mb = a_layer_a_group}},
      {"pipeline", "pipeline", {.devices_per_rank = 2}, {.split_size = 1}},
      {"pipeline_of_ranks", "pipeline", {.pipeline_ranks = 2}, {.split_size = 1}},
      {"ddp", "ddp", {.replicas = 2}, {.shard_group_mb = a_layer_a_group}},
      {"ddp_with_accumulation", "ddp", {.replicas = 2}, {.accumulation_steps = 2}},
      {"tensor_parallel", "tensor_parallel", {.tensor_ranks = 2}},
      {"tensor_parallel_with_replicas", "tensor_parallel", {.replicas = 2, .tensor_ranks = 2}},
      {"zero1", "zero1", {.replicas = 2, .sharded = true}, {.shard_group_mb = a_layer_a_group}},
      {"zero2", "zero2", {.replicas = 2, .sharded = true}},
      {"zero3", "zero3", {.replicas = 2, .sharded = true}},
      {"zero1_in_groups", "zero1", {.replicas = 4, .sharded = true, .shard_groups = 2}}};
  return all;
}

models::WorkloadOptions in_float16() {
  models::WorkloadOptions options = strategies::small_workload("toy", batch_size);
  options.dtype = at::kHalf;
  options.mixed = true;
  options.loss_scale = first_scale;
  options.dynamic_loss_scale = true;
  options.optimizer = {.kind = models::OptimizerOptions::Kind::adamw, .learning_rate = 1e-3};
  return options;
}

/// What `work` finds on each rank.
template <class Result, class Work>
std::vector<Result> on_each_rank(const Case& of, const Work& work) {
  std::vector<Result> found(static_cast<std::size_t>(of.spread.ranks()));
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, in_float16(), of.spread);
    training.strategy =
        strategies::find_strategy(of.strategy).make(training.rank_context(of.options));
    found[static_cast<std::size_t>(training.rank)] = work(training);
  });
  return found;
}

bool step(strategies::RankTraining& training, const models::Batch& batch) {
  const auto pending = training.strategy->step(batch);
  runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
  return pending->skipped();
}

/// Without gradients and the scaler's own entries.
strategies::StateDictionary trained(strategies::StateDictionary state) {
  std::erase_if(state, [](const auto& entry) {
    return entry.first.starts_with("gradient.") || entry.first.starts_with("loss_scaler.");
  });
  return state;
}

/// No output depends on the first input, of which the gradient is huge where the input is. Of the
/// hidden features only the first half has a gradient.
void blind_to_the_first_input(strategies::Strategy& strategy) {
  auto state = strategy.state();
  state.at("net1.weight").select(1, 0).zero_();
  state.at("net1.bias").fill_(5);  // all features are positive
  state.at("net2.weight").slice(1, 5).zero_();
  strategy.load(state);
}

/// Only the last sample has it, so only one replica; and in that the gradient that overflows is a
/// part of the first stage, and of the first rank's shard.
models::Batch with_a_huge_input(const models::Workload& workload) {
  models::Batch batch = workload.make_batch(1);
  batch.inputs = batch.inputs.clone();
  batch.inputs[batch_size - 1][0] = 60000;  // a float16 holds 65504
  return batch;
}

struct Skip {
  std::vector<bool> skipped = {};
  std::vector<double> scales = {};
  double change = 0;    // by the step that overflows
  double progress = 0;  // by the one behind it
};

class DynamicLossScale : public testing::TestWithParam<Case> {};

TEST_P(DynamicLossScale, HalvesWhereOneRankOverflowsAndAllSkipTheStep) {
  const auto found = on_each_rank<Skip>(GetParam(), [](strategies::RankTraining& training) {
    Skip skip;
    const auto note = [&](bool skipped) {
      skip.skipped.push_back(skipped);
      skip.scales.push_back(training.strategy->state().at(LossScale::scale_name).item<double>());
    };
    note(step(training, training.workload.make_batch(0)));
    blind_to_the_first_input(*training.strategy);
    const auto before = trained(training.strategy->state());
    note(step(training, with_a_huge_input(training.workload)));
    const auto behind = trained(training.strategy->state());
    note(step(training, training.workload.make_batch(2)));
    skip.change = strategies::largest_difference(before, behind);
    skip.progress = strategies::largest_difference(behind, trained(training.strategy->state()));
    return skip;
  });
  for (const Skip& rank : found) {
    EXPECT_EQ(rank.skipped, (std::vector<bool>{false, true, false}));
    EXPECT_EQ(rank.scales, (std::vector<double>{first_scale, first_scale / 2, first_scale / 2}));
    EXPECT_EQ(rank.change, 0);
    EXPECT_GT(rank.progress, 0);
  }
}

// Gradients were made with the scale from before, whichever group or stage is updated first.
TEST_P(DynamicLossScale, GrowsBehindAStepThatTrainsAsAnyOther) {
  const auto state_behind = [](std::int64_t good_steps, double scale) {
    const auto found = on_each_rank<strategies::StateDictionary>(
        GetParam(), [&](strategies::RankTraining& training) {
          auto state = training.strategy->state();
          state.at(LossScale::good_steps_name).fill_(good_steps);
          training.strategy->load(state);
          EXPECT_FALSE(step(training, training.workload.make_batch(0)));
          state = training.strategy->state();
          EXPECT_EQ(state.at(LossScale::scale_name).item<double>(), scale);
          return trained(state);
        });
    return found.front();
  };
  const auto usual = state_behind(0, first_scale);
  const auto grown = state_behind(LossScale::growth_interval - 1, 2 * first_scale);
  EXPECT_EQ(strategies::largest_difference(usual, grown), 0);
}

INSTANTIATE_TEST_SUITE_P(Of, DynamicLossScale, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace stratagem::stages::dynamic_loss_scale_test
