// Pipelines whose stages are spread over ranks, alone and with replicas.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include "bench/oracle/oracle.h"
#include "strategies/distributed/counted_costs.h"
#include "strategies/presets/staged.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "strategies/stages/partition.h"
#include "strategies/stages/staged_strategy.h"
#include "tests/strategies/accounting.h"
#include "tests/strategies/rank_training.h"

namespace stratagem::stages::rank_pipeline_test {
namespace {

using distributed::RankContext;
using schedules::ActionKind;

constexpr auto F = ActionKind::forward;
constexpr auto B = ActionKind::backward;

struct Case {
  std::string model;
  strategies::Spread spread;
  std::string schedule = "1f1b";
  std::int64_t batch = 8;
  std::int64_t split = 2;
  decltype(strategies::StrategyOptions::compression) compression = "none";
};

std::ostream& operator<<(std::ostream& out, const Case& of) {
  return out << of.model << ", replicas " << of.spread.replicas << ", pipeline ranks "
             << of.spread.pipeline_ranks << ", devices a rank " << of.spread.devices_per_rank
             << ", schedule " << of.schedule << ", batch " << of.batch << ", split " << of.split
             << ", compression " << of.compression.name()
             << (of.spread.in_order ? ", in order" : "");
}

models::WorkloadOptions workload_of(const Case& of) {
  return strategies::small_workload(of.model, of.batch);
}

std::unique_ptr<strategies::Strategy> make(const strategies::StrategyContext& context,
                                           const Case& of) {
  return presets::make_staged(context, [&of](const strategies::PlanRequest&) {
    return strategies::PlanOutline{.schedule = of.schedule,
                                   .cut_by = strategies::MicroBatchOption::split_size};
  });
}

strategies::StrategyOptions options_of(const Case& of) {
  return {.split_size = of.split, .compression = of.compression, .schedule = of.schedule};
}

/// Calls `work` on each rank with its training.
void on_ranks(const Case& of, const std::function<void(strategies::RankTraining&)>& work) {
  runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, workload_of(of), of.spread);
    training.strategy = make(training.rank_context(options_of(of)), of);
    work(training);
  });
}

void verify(const Case& of) {
  std::mutex mutex;
  on_ranks(of, [&](strategies::RankTraining& training) {
    const auto found = bench::compare_with_oracle(*training.strategy, training.workload);
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(found.passed) << of << ", rank " << training.rank << ": " << found.message;
  });
}

void verify_in_order(const Case& of) { strategies::over_the_backend_in_order(of, verify); }

// Other models on every schedule: see IsTheOneOfAProcessBitForBit.
TEST(RankPipeline, EqualsOneDevice) {
  for (const std::string& schedule : schedules::schedule_names()) {
    strategies::over_both_backends(
        Case{.model = "mlp", .spread = {.pipeline_ranks = 2}, .schedule = schedule}, verify);
  }
  verify_in_order({.model = "toy", .spread = {.pipeline_ranks = 2}});
  verify_in_order({.model = "resnet18", .spread = {.pipeline_ranks = 3}, .split = 3});
  verify_in_order({.model = "resnet18", .spread = {.pipeline_ranks = 2, .devices_per_rank = 2}});
  // Wrapped around more than two ranks, a receive in another order is another stage's activation.
  for (const char* schedule : {"interleaved_1f1b", "zb_v"}) {
    verify_in_order(
        {.model = "resnet18", .spread = {.pipeline_ranks = 3}, .schedule = schedule, .batch = 6});
    verify_in_order({.model = "resnet18",
                     .spread = {.pipeline_ranks = 2, .devices_per_rank = 2},
                     .schedule = schedule});
  }
}

TEST(RankPipeline, WithReplicasEqualsOneDeviceThatSeesTheSameShards) {
  verify({.model = "mlp", .spread = {.replicas = 2, .devices_per_rank = 2}});
  verify_in_order({.model = "resnet18", .spread = {.replicas = 2, .devices_per_rank = 2}});
  verify_in_order({.model = "resnet18",
                   .spread = {.replicas = 2, .devices_per_rank = 2},
                   .schedule = "naive",
                   .split = 4});
  strategies::over_both_backends(Case{.model = "resnet18",
                                      .spread = {.replicas = 2, .pipeline_ranks = 2},
                                      .batch = 11,
                                      .split = 3},
                                 verify);
  for (const char* schedule : {"interleaved_1f1b", "zb_h1", "zb_h2", "zb_v"}) {
    verify_in_order(
        {.model = "mlp", .spread = {.replicas = 2, .pipeline_ranks = 2}, .schedule = schedule});
  }
}

TEST(RankPipeline, ReplicasMaySendTheirGradientsInHalfPrecision) {
  const Case of{
      .model = "mlp", .spread = {.replicas = 2, .pipeline_ranks = 2}, .compression = "fp16"};
  strategies::over_both_backends(of, [](const Case& each) {
    on_ranks(each, [&](strategies::RankTraining& training) {
      const auto found = bench::compare_with_oracle(*training.strategy, training.workload,
                                                    bench::compressed_tolerance);
      EXPECT_TRUE(found.passed) << each << ", rank " << training.rank << ": " << found.message;
      EXPECT_GT(found.max_relative_error, bench::exact_tolerance) << "it was not compressed";
    });
  });
}

/// The state after two steps.
strategies::StateDictionary trained(strategies::Strategy& strategy, const models::Batch& batch) {
  strategy.step(batch);
  strategy.step(batch);
  return strategy.state();
}

void expect_the_bits_of_one_process(const Case& of) {
  strategies::Training whole(workload_of(of), of.spread.stages());
  const models::Batch batch = whole.workload.make_batch(0);
  whole.strategy = make(whole.context(options_of(of)), of);
  const strategies::StateDictionary expected = trained(*whole.strategy, batch);
  strategies::over_the_backend_in_order(of, [&](const Case& each) {
    on_ranks(each, [&](strategies::RankTraining& training) {
      const strategies::StateDictionary found = trained(*training.strategy, batch);
      EXPECT_EQ(found.size(), expected.size());
      for (const auto& [name, tensor] : expected) {
        EXPECT_TRUE(at::equal(found.at(name), tensor))
            << each << ": " << name << " on rank " << training.rank;
      }
    });
  });
}

TEST(RankPipeline, IsTheOneOfAProcessBitForBit) {
  for (const std::string& schedule : schedules::schedule_names()) {
    for (const char* model : {"mlp", "resnet18"}) {
      expect_the_bits_of_one_process(
          {.model = model, .spread = {.pipeline_ranks = 2}, .schedule = schedule});
    }
  }
}

void expect_its_costs(const Case& of) {
  on_ranks(of, [&](strategies::RankTraining& training) {
    const auto batch = training.workload.make_batch(0);
    for (int step = 0; step < 3; ++step) {
      if (step == 2) training.reset_counts();
      training.strategy->step(batch);
      runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    }
    EXPECT_EQ(
        distributed::difference_from_costs(training.counts(), training.strategy->costs(of.batch)),
        "")
        << of;
  });
}

TEST(RankPipeline, CommunicatesExactlyWhatItsCostsSay) {
  for (const Case& of : std::vector<Case>{{"resnet18", {.pipeline_ranks = 2}},
                                          {"resnet18", {.pipeline_ranks = 2}, "interleaved_1f1b"},
                                          {"resnet18", {.pipeline_ranks = 2}, "zb_v"},
                                          {"resnet18", {.pipeline_ranks = 3}},
                                          {"resnet18", {.replicas = 2, .pipeline_ranks = 2}},
                                          {"resnet18", {.replicas = 2, .devices_per_rank = 2}},
                                          {.model = "resnet18",
                                          .spread = {.replicas = 2, .pipeline_ranks = 2},
                                          .compression = "fp16"}}) {
    strategies::over_both_backends(of, expect_its_costs);
  }
}

// What a stage has sent counts until the other rank has it, and not to the step's end or longer.
TEST(RankPipeline, ASentGradientIsForgottenOnceTheOtherRankHasIt) {
  const Case of{.model = "mlp", .spread = {.pipeline_ranks = 2}, .batch = 4 * 1024, .split = 1024};
  models::WorkloadOptions options = strategies::small_workload(of.model, of.batch);
  options.classes = 2;
  // Before each forward pass of the last stage: [micro-batch][step].
  std::map<int, std::vector<std::int64_t>> bytes;
  runtime::on_ranks(2, [&](distributed::RankContext& ranks) {
    strategies::RankTraining training(ranks, options, of.spread);
    strategies::StrategyContext context = training.rank_context();
    context.before_action = [&, account = 10 + training.rank](const schedules::Action& action) {
      backends::use_account(account);
      if (action.kind != ActionKind::forward || action.stage != 1) return;
      bytes[action.micro_batch].push_back(backends::memory_of(account).current_bytes);
    };
    training.strategy = make(context, of);
    const models::Batch batch = training.workload.make_batch(0);
    for (int step = 0; step < 2; ++step) {
      training.strategy->step(batch);
      runtime::synchronize_all(training.group.devices, std::chrono::seconds(20));
    }
  });
  const auto hidden = static_cast<std::int64_t>(std::round(1024 * options.width));
  const std::int64_t gradient = of.split * hidden * static_cast<std::int64_t>(sizeof(double));
  EXPECT_LT(bytes.at(3).at(0) - bytes.at(1).at(0), gradient / 2) << "within a step";
  EXPECT_LT(bytes.at(0).at(1) - bytes.at(0).at(0), gradient) << "from one to the next";
}

// Interleaved as a V: the first rank has both ends, the second one the two in the middle.
TEST(RankPipeline, NeighboursOnOneRankTrainAsOneDevice) {
  for (const bool in_order : {false, true}) {
    runtime::on_ranks(2, [in_order](distributed::RankContext& ranks) {
      strategies::RankTraining training(ranks, strategies::small_workload("mlp", 6),
                                        {.pipeline_ranks = 2, .in_order = in_order});
      strategies::StrategyOptions options;
      options.cut = stages::choose_cut(training.workload, 4, "flops");
      StagedStrategy strategy(training.rank_context(options), [](std::int64_t samples) {
        schedules::Schedule compute{.name = "hand-made",
                                    .micro_batches = 2,
                                    .device_of_stage = {0, 1, 1, 0},
                                    .rank_of_device = {0, 1},
                                    .actions = {{{F, 0, 0},
                                                 {F, 0, 1},
                                                 {F, 3, 0},
                                                 {B, 3, 0},
                                                 {F, 3, 1},
                                                 {B, 3, 1},
                                                 {B, 0, 0},
                                                 {B, 0, 1}},
                                                {{F, 1, 0},
                                                 {F, 2, 0},
                                                 {F, 1, 1},
                                                 {F, 2, 1},
                                                 {B, 2, 0},
                                                 {B, 1, 0},
                                                 {B, 2, 1},
                                                 {B, 1, 1}}}};
        StepPlan plan{.schedule = schedules::lower(compute),
                      .partition = schedules::split_batch_by_count(samples, 2)};
        schedules::validate(plan.schedule);
        plan.evaluation = schedules::forward_only(plan.schedule);
        plan.of_stages = plan.schedule;
        return plan;
      });
      const auto verified = bench::compare_with_oracle(strategy, training.workload);
      EXPECT_TRUE(verified.passed) << verified.message;
    });
  }
}

TEST(RankPipeline, ARankHoldsAndRunsItsOwnStagesOnly) {
  on_ranks({.model = "mlp", .spread = {.pipeline_ranks = 2}}, [](auto& training) {
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
}  // namespace stratagem::stages::rank_pipeline_test
