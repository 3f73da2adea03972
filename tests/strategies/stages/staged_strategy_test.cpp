#include "strategies/stages/staged_strategy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "bench/oracle/oracle.h"
#include "strategies/schedules/batch_split.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "tests/strategies/training.h"

namespace stratagem::stages::staged_strategy_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto F = schedules::ActionKind::forward;

/// With replicas it needs ranks: see ddp_test.cpp and rank_pipeline_test.cpp.
bool has_replicas(const std::string& strategy) {
  const strategies::StrategyEntry& entry = strategies::find_strategy(strategy);
  return entry.usually_spreads_over("data") || entry.usually_spreads_over("tensor") ||
         entry.usually_spreads_over("context");
}

bool reads(const std::string& strategy, const std::string& option) {
  const auto& options = strategies::find_strategy(strategy).options;
  return std::ranges::find(options, option) != options.end();
}

void expect_equal_to_oracle(const std::string& strategy,
                            const models::WorkloadOptions& workload_options, int devices,
                            const strategies::StrategyOptions& options = {}) {
  SCOPED_TRACE(strategy + " of " + workload_options.model + " on " + std::to_string(devices) +
               " devices, split " + std::to_string(options.split_size) + " of " +
               std::to_string(workload_options.batch) + ", schedule " + options.schedule);
  strategies::Training training(workload_options, devices);
  const auto result =
      bench::compare_with_oracle(training.make(strategy, options), training.workload);
  EXPECT_TRUE(result.passed) << result.message;
}

/// Every registered strategy; those that read it with each schedule and split size.
void expect_every_strategy_equal_to_oracle(const models::WorkloadOptions& workload_options,
                                           const std::vector<int>& stages,
                                           const std::vector<std::int64_t>& splits) {
  for (const std::string& strategy : strategies::strategy_names()) {
    if (has_replicas(strategy)) continue;
    if (!strategies::find_strategy(strategy).multi_device) {
      expect_equal_to_oracle(strategy, workload_options, 1);
      continue;
    }
    for (const int devices : stages) {
      if (!reads(strategy, "split_size")) {
        expect_equal_to_oracle(strategy, workload_options, devices);
        continue;
      }
      for (const std::string& schedule : schedules::schedule_names()) {
        for (const std::int64_t split : splits) {
          const int needed = devices * schedules::find_schedule(schedule).stages_for(1);
          if (needed > models::find_model(workload_options.model).layers) continue;
          expect_equal_to_oracle(strategy, workload_options, devices,
                                 {.split_size = split, .schedule = schedule, .virtual_stages = 1});
        }
      }
    }
  }
}

TEST(StrategyRegistry, HoldsEveryStrategy) {
  // One whose self-registration is lost in linking would be missing here.
  EXPECT_THAT(strategies::strategy_names(),
              ElementsAre("context_parallel", "data_parallel", "ddp", "ddp_model_parallel",
                          "model_parallel", "pipeline", "sequence_parallel", "single",
                          "tensor_parallel", "zero1", "zero2", "zero3"));
  for (const std::string& name : strategies::strategy_names()) {
    EXPECT_FALSE(strategies::find_strategy(name).summary.empty()) << name;
  }
  EXPECT_THROW(strategies::find_strategy("pipelin"), std::invalid_argument);
}

TEST(StagedStrategy, EveryStrategyTrainsToy) {
  // Splits: one sample, not dividing, dividing, the whole batch.
  expect_every_strategy_equal_to_oracle(strategies::small_workload("toy", 10), {1, 2, 3},
                                        {1, 4, 5, 10});
}

TEST(StagedStrategy, EveryStrategyTrainsMlp) {
  expect_every_strategy_equal_to_oracle(strategies::small_workload("mlp", 6), {1, 2, 3, 4},
                                        {1, 4, 6});
}

TEST(StagedStrategy, EveryStrategyTrainsResnet) {
  // Eight elements a BatchNorm channel and more: at least two samples of 2x2 positions.
  expect_every_strategy_equal_to_oracle(strategies::small_workload("resnet18", 5), {2, 4}, {3});
  expect_every_strategy_equal_to_oracle(strategies::small_workload("resnet18", 6), {3}, {2, 6});
}

TEST(StagedStrategy, InterleavedStagesTrainOnAnyNumberOfDevices) {
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t each : {2, 3}) {
      const auto workload_options = strategies::small_workload("resnet18", 6);
      strategies::StrategyOptions options{
          .split_size = 2, .schedule = "interleaved_1f1b", .virtual_stages = each};
      options.cut = stages::choose_cut(models::Workload(workload_options),
                                       devices * static_cast<int>(each), "flops");
      expect_equal_to_oracle("pipeline", workload_options, devices, options);
    }
  }
}

TEST(StagedStrategy, EveryOptimizerAndLoss) {
  using Kind = models::OptimizerOptions::Kind;
  for (const models::Loss loss : {models::Loss::mse, models::Loss::cross_entropy}) {
    for (const auto& optimizer : std::vector<models::OptimizerOptions>{
             {.learning_rate = 0.1},
             {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01},
             {.kind = Kind::adam, .learning_rate = 1e-3, .weight_decay = 0.01},
             {.kind = Kind::adamw, .learning_rate = 1e-3, .weight_decay = 0.01}}) {
      for (const char* model : {"mlp", "resnet18"}) {
        auto options = strategies::small_workload(model, 5);
        options.loss = loss;
        options.optimizer = optimizer;
        SCOPED_TRACE(std::string(to_string(loss)) + ", optimizer " +
                     std::to_string(static_cast<int>(optimizer.kind)));
        expect_equal_to_oracle("pipeline", options, 2, {.split_size = 3, .schedule = "1f1b"});
      }
    }
  }
}

TEST(StagedStrategy, BothMemoryFormats) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    auto options = strategies::small_workload("resnet18", 4);
    options.format = format;
    expect_equal_to_oracle("pipeline", options, 2, {.split_size = 2, .schedule = "gpipe"});
  }
}

TEST(StagedStrategy, InputsKeptOnTheDevice) {
  const auto options = strategies::small_workload("mlp", 5);
  for (const std::string& strategy : strategies::strategy_names()) {
    if (has_replicas(strategy)) continue;
    const int devices = strategies::find_strategy(strategy).multi_device ? 2 : 1;
    expect_equal_to_oracle(strategy, options, devices,
                           {.split_size = 2, .schedule = "1f1b", .inputs = "device"});
  }
}

TEST(StagedStrategy, StepsEnqueuedBackToBackAreThoseOfOneAtATime) {
  const auto options = strategies::small_workload("mlp", 6);
  const strategies::StrategyOptions how{.split_size = 2, .schedule = "1f1b"};
  strategies::Training eager(options, 3);
  strategies::Training patient(options, 3);
  strategies::Strategy& ahead = eager.make("pipeline", how);
  strategies::Strategy& one_by_one = patient.make("pipeline", how);
  std::vector<std::unique_ptr<strategies::PendingStep>> pending;
  std::vector<double> losses;
  for (std::uint64_t index = 0; index < 4; ++index) {
    pending.push_back(ahead.step(eager.workload.make_batch(index)));
    const auto step = one_by_one.step(patient.workload.make_batch(index));
    one_by_one.state();
    losses.push_back(step->loss());
  }
  EXPECT_EQ(strategies::largest_difference(ahead.state(), one_by_one.state()), 0);
  for (std::size_t index = 0; index < losses.size(); ++index) {
    EXPECT_EQ(pending[index]->loss(), losses[index]);
  }
  EXPECT_NE(losses.front(), losses.back());
}

TEST(StagedStrategy, StateMovesBetweenStrategies) {
  const auto options = strategies::small_workload("resnet18", 4);
  strategies::Training from(options, 2);
  strategies::Training to(options, 3);
  strategies::Strategy& first = from.make("pipeline", {.split_size = 2, .schedule = "1f1b"});
  strategies::Strategy& second = to.make("pipeline", {.split_size = 2, .schedule = "gpipe"});
  const models::Batch batch = from.workload.make_batch(0);
  first.step(batch);
  const strategies::StateDictionary state = first.state();
  EXPECT_TRUE(state.contains("layer1.0.conv1.weight"));
  EXPECT_TRUE(state.contains("bn1.running_mean"));
  EXPECT_TRUE(state.contains("gradient.fc.bias"));
  EXPECT_TRUE(state.contains("optimizer.momentum_buffer.fc.bias"));

  second.load(state);
  strategies::StateDictionary loaded = second.state();
  strategies::StateDictionary wanted = state;
  std::erase_if(wanted, [](const auto& entry) { return entry.first.starts_with("gradient."); });
  EXPECT_EQ(strategies::largest_difference(loaded, wanted), 0);
  // Both go on alike; gpipe adds the gradients in another order.
  first.step(batch);
  second.step(batch);
  EXPECT_LT(strategies::largest_difference(first.state(), second.state()), 1e-9);
}

TEST(StagedStrategy, StateIsACopy) {
  strategies::Training training(strategies::small_workload("toy", 2), 1);
  strategies::Strategy& strategy = training.make("single");
  const strategies::StateDictionary before = strategy.state();
  const double bias = before.at("net2.bias")[0].item<double>();
  strategy.step(training.workload.make_batch(0));
  EXPECT_NE(strategy.state().at("net2.bias")[0].item<double>(), bias);
  EXPECT_EQ(before.at("net2.bias")[0].item<double>(), bias);
}

TEST(StagedStrategy, LoadRefusesWhatDoesNotFit) {
  strategies::Training training(strategies::small_workload("toy", 2), 2);
  strategies::Strategy& strategy = training.make("model_parallel");
  const auto refusal = [&](const strategies::StateDictionary& state) -> std::string {
    try {
      strategy.load(state);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  strategies::StateDictionary state = strategy.state();
  state.erase("net2.weight");
  EXPECT_EQ(refusal(state), "the state has no entry \"net2.weight\"");
  state["net2.weight"] = at::zeros({5, 9}, at::kDouble);
  EXPECT_EQ(refusal(state), "the state's \"net2.weight\" has another shape");
}

TEST(StagedStrategy, EvaluateChangesNothingAndNormalisesByRunningStatistics) {
  const auto options = strategies::small_workload("resnet18", 4);
  strategies::Training training(options, 2);
  strategies::Training untouched(options, 2);
  const strategies::StrategyOptions how{.split_size = 2, .schedule = "1f1b"};
  strategies::Strategy& strategy = training.make("pipeline", how);
  strategies::Strategy& other = untouched.make("pipeline", how);
  const models::Batch batch = training.workload.make_batch(0);
  strategy.step(batch);
  other.step(batch);
  const strategies::StateDictionary before = strategy.state();
  const strategies::Evaluation evaluation = strategy.evaluate(training.workload.make_batch(1));
  EXPECT_EQ(strategies::largest_difference(strategy.state(), before), 0);
  EXPECT_EQ(strategy.evaluate(training.workload.make_batch(1)), evaluation);
  const auto training_loss = bench::forward_loss(training.workload, training.workload.make_batch(1),
                                                 strategy.batch_partition(4));
  EXPECT_GT(std::abs(evaluation.loss - training_loss), 1e-6);
  // It trains on as if it had never been asked.
  strategy.step(batch);
  other.step(batch);
  EXPECT_EQ(strategies::largest_difference(strategy.state(), other.state()), 0);
}

TEST(StagedStrategy, EvaluateTakesItsOwnBatchWhenInputsStayOnTheDevice) {
  const auto options = strategies::small_workload("mlp", 4);
  strategies::Training keeping(options, 2);
  strategies::Training copying(options, 2);
  strategies::Strategy& kept =
      keeping.make("pipeline", {.split_size = 2, .schedule = "1f1b", .inputs = "device"});
  strategies::Strategy& copied = copying.make("pipeline", {.split_size = 2, .schedule = "1f1b"});
  const models::Batch batch = keeping.workload.make_batch(0);
  const models::Batch other = keeping.workload.make_batch(1);
  kept.step(batch);
  copied.step(batch);
  EXPECT_EQ(kept.evaluate(other), copied.evaluate(other));
  kept.step(batch);
  copied.step(batch);
  EXPECT_EQ(strategies::largest_difference(kept.state(), copied.state()), 0);
}

TEST(StagedStrategy, BatchPartitionHasTheRemainderLast) {
  strategies::Training training(strategies::small_workload("toy", 10), 2);
  const auto sizes = [](const strategies::Strategy& strategy) {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const schedules::Slice& slice : strategy.batch_partition(10))
      all.emplace_back(slice.start, slice.count);
    return all;
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_THAT(sizes(training.make("pipeline", {.split_size = 4})),
              ElementsAre(Pair{0, 4}, Pair{4, 4}, Pair{8, 2}));
  EXPECT_THAT(sizes(training.make("pipeline", {.split_size = 5})),
              ElementsAre(Pair{0, 5}, Pair{5, 5}));
  EXPECT_THAT(sizes(training.make("pipeline", {.split_size = 12})), ElementsAre(Pair{0, 10}));
  EXPECT_THAT(sizes(training.make("model_parallel", {.split_size = 4})), ElementsAre(Pair{0, 10}));
}

TEST(StagedStrategy, CostsByFormula) {
  // Eight linear layers, n samples: 2 n in out forward, as much for each of the two gradients, but
  // nobody asks for the gradient of the data.
  const auto options = strategies::small_workload("mlp", 6);
  const double hidden = std::round(1024 * options.width);
  const double n = 6;
  const double first = 2 * n * 1024 * hidden;
  const double others = 2 * n * (6 * hidden * hidden + hidden * 7);
  const double expected = 2 * first + 3 * others;
  strategies::Training one(options, 1);
  EXPECT_DOUBLE_EQ(one.make("single").costs(6).flops, expected);
  EXPECT_EQ(one.strategy->costs(6).stages, 1);
  EXPECT_EQ(one.strategy->costs(6).ideal_bubble, 0);

  strategies::Training three(options, 3);
  const strategies::Costs costs =
      three.make("pipeline", {.split_size = 4, .schedule = "gpipe"}).costs(6);
  EXPECT_DOUBLE_EQ(costs.flops, expected) << "however the batch and the layers are cut";
  EXPECT_EQ(costs.stages, 3);
  EXPECT_DOUBLE_EQ(costs.ideal_bubble, 2.0 / 4);  // (p - 1) / (m + p - 1), m = 2
  EXPECT_TRUE(costs.collectives.empty());
  EXPECT_DOUBLE_EQ(three.make("model_parallel").costs(6).ideal_bubble, 2.0 / 3);
}

TEST(StagedStrategy, ACutThatMakesTheWrongNumberOfStagesIsRefused) {
  strategies::Training training(strategies::small_workload("mlp", 4), 2);
  try {
    training.make("pipeline", {.split_size = 2, .cut = {"fc3", "fc5"}});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--cut: 2 cuts make 3 stages, expected 2");
  }
}

TEST(StagedStrategy, AFailureIsToldOnceNobodyTouchesTheStagesAnyMore) {
  // Device 0 is still in its next forward when device 1 fails.
  std::atomic<bool> inside{false};
  std::atomic<bool> ended{false};
  strategies::Training training(strategies::small_workload("mlp", 4), 2);
  strategies::StrategyContext context = training.context({.split_size = 1, .schedule = "gpipe"});
  context.before_action = [&](const schedules::Action& action) {
    if (action == schedules::Action{F, 0, 2}) {
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ended = true;
    }
    if (action == schedules::Action{F, 1, 0}) {
      while (!inside) std::this_thread::yield();
      throw std::runtime_error("an injected fault");
    }
  };
  auto strategy = strategies::find_strategy("pipeline").make(context);
  strategy->step(training.workload.make_batch(0));
  try {
    strategy->state();
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cpu:1, action 1F0: an injected fault");
  }
  EXPECT_TRUE(ended);
  strategy.reset();
}

TEST(StrategyRegistry, AStrategyThatTrainsNeedsAnOutline) {
  models::register_entry(strategies::StrategyEntry{
      .name = "staged_without_outline",
      .make = [](const strategies::StrategyContext&) -> std::unique_ptr<strategies::Strategy> {
        return nullptr;
      }});
  EXPECT_THAT(
      models::registration_errors(),
      testing::ElementsAre("the strategy \"staged_without_outline\" lacks an outline of its plan"));
  models::registration_errors().clear();
  EXPECT_THAT(strategies::strategy_names(),
              testing::Not(testing::Contains("staged_without_outline")));
}

}  // namespace
}  // namespace stratagem::stages::staged_strategy_test
