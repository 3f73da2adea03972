// A strategy takes batches of any size: the short last one of an epoch, and one that has no samples
// for some replica.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/oracle/oracle.h"
#include "tests/strategies/rank_threads.h"
#include "tests/strategies/rank_training.h"
#include "tests/strategies/training.h"

namespace stratagem::stages::batch_sizes_test {
namespace {

using strategies::small_workload;
using strategies::Training;

constexpr std::int64_t largest = 7;
const std::vector<std::int64_t> sizes = {7, 3, 7, 1, 5, 2, 7};

/// Trains on the first samples of one batch after another, each at a rate of its own that later
/// ones do not change.
void train(strategies::Strategy& strategy, const models::Workload& workload,
           std::vector<double>& losses) {
  std::vector<std::unique_ptr<strategies::PendingStep>> steps;
  for (const std::int64_t samples : sizes) {
    strategy.set_learning_rate(0.1 / static_cast<double>(steps.size() + 1));
    steps.push_back(strategy.step(workload.make_batch(steps.size()).slice(0, samples)));
  }
  strategy.set_learning_rate(100);
  strategy.state();
  for (const auto& step : steps) losses.push_back(step->loss());
  for (const std::int64_t samples : {7, 2}) {
    const auto evaluation = strategy.evaluate(workload.make_batch(9).slice(0, samples));
    losses.push_back(evaluation.loss);
    losses.push_back(static_cast<double>(evaluation.correct));
  }
}

void expect_equal(strategies::Strategy& found, strategies::Strategy& expected,
                  const models::Workload& workload) {
  std::vector<double> losses;
  std::vector<double> wanted;
  train(expected, workload, wanted);
  train(found, workload, losses);
  ASSERT_EQ(losses.size(), wanted.size());
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    EXPECT_NEAR(losses[step], wanted[step], 1e-12 * std::abs(wanted[step])) << "step " << step;
  }
  EXPECT_LT(strategies::largest_difference(found.state(), expected.state()), 1e-12);
}

TEST(BatchSizes, EveryStageScheduleTrainsAsOneDevice) {
  for (const char* model : {"toy", "mlp"}) {
    for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2", "zb_v", "interleaved_1f1b"}) {
      Training one(small_workload(model, largest), 1);
      Training two(small_workload(model, largest), 2);
      const strategies::StrategyOptions options{.split_size = 2, .schedule = schedule};
      const int each = schedules::find_schedule(schedule).stages_for(2);
      if (2 * each > models::find_model(model).layers) continue;
      SCOPED_TRACE(std::string(model) + ", " + schedule);
      expect_equal(two.make("pipeline", options), one.make("single"), one.workload);
    }
  }
}

struct Replicas {
  strategies::Spread spread = {.replicas = 3};
};

TEST(BatchSizes, ReplicasWithoutSamplesTakePart) {
  strategies::over_both_backends(Replicas{}, [](const Replicas& of) {
    runtime::on_ranks(of.spread.ranks(), [&](distributed::RankContext& ranks) {
      Training one(small_workload("mlp", largest), 1);
      for (const std::int64_t accumulation : {1, 2}) {
        strategies::RankTraining training(ranks, small_workload("mlp", largest), of.spread);
        training.strategy = strategies::find_strategy("ddp").make(
            training.rank_context({.accumulation_steps = accumulation}));
        expect_equal(*training.strategy, one.make("single"), one.workload);
      }
    });
  });
}

/// Of the loss of the whole batch at once: no part of it is weighed.
strategies::StateDictionary gradients_of_the_mean(const models::Workload& workload,
                                                  const models::Batch& batch) {
  const models::Model model = workload.make_model();
  at::mse_loss(models::forward(model.layers, batch.inputs), batch.targets).backward();
  strategies::StateDictionary gradients;
  for (const auto& [name, tensor] : models::parameters(model.layers)) {
    gradients["gradient." + name] = tensor.grad();
  }
  return gradients;
}

void expect_gradients_of_the_mean(strategies::Strategy& strategy,
                                  const models::Workload& workload) {
  const models::Batch batch = workload.make_batch(0);
  strategy.step(batch);
  auto state = strategy.state();
  std::erase_if(state, [](const auto& entry) { return !entry.first.starts_with("gradient."); });
  EXPECT_LT(strategies::largest_difference(state, gradients_of_the_mean(workload, batch)), 1e-13);
}

// Strategy and oracle weigh parts of a batch by one function; this asks neither of them.
TEST(BatchSizes, EverySampleCountsTheSameInUnevenParts) {
  for (const auto& [name, options] :
       std::vector<std::pair<std::string, strategies::StrategyOptions>>{
           {"pipeline", {.split_size = 3, .schedule = "1f1b"}},
           {"data_parallel", {}},
           {"data_parallel", {.loss_on = "replicas"}}}) {
    SCOPED_TRACE(name + ", loss on " + options.loss_on.name());
    Training training(small_workload("mlp", largest), 2);
    expect_gradients_of_the_mean(training.make(name, options), training.workload);
  }
  for (const char* name : {"ddp", "zero1", "zero3"}) {
    SCOPED_TRACE(name);
    const strategies::Spread spread{.replicas = 3};
    runtime::on_ranks(spread.ranks(), [&](distributed::RankContext& ranks) {
      strategies::RankTraining training(ranks, small_workload("mlp", largest), spread);
      training.strategy =
          strategies::find_strategy(name).make(training.rank_context({.accumulation_steps = 2}));
      expect_gradients_of_the_mean(*training.strategy, training.workload);
    });
  }
}

TEST(BatchSizes, NormalisedSamplesAreThoseOfThePartition) {
  const auto options = small_workload("resnet18", 5);
  for (const std::int64_t samples : {5, 3, 4}) {
    Training training(options, 2);
    strategies::Strategy& strategy =
        training.make("pipeline", {.split_size = 2, .schedule = "1f1b"});
    const models::Batch batch = training.workload.make_batch(0).slice(0, samples);
    const auto expected =
        bench::Oracle(training.workload, batch, strategy.batch_partition(samples), 0).step();
    const auto step = strategy.step(batch);
    const auto state = strategy.state();
    EXPECT_NEAR(step->loss(), expected.loss, 1e-12);
    EXPECT_LT(strategies::largest_difference(state, expected.state), 1e-9) << samples;
  }
}

TEST(BatchSizes, InputsThatStayOnTheDeviceAreLoadedAnewForAnotherSize) {
  Training one(small_workload("mlp", 6), 1);
  Training two(small_workload("mlp", 6), 2);
  strategies::Strategy& expected = one.make("single");
  strategies::Strategy& found =
      two.make("pipeline", {.split_size = 2, .schedule = "1f1b", .inputs = "device"});
  const models::Batch batch = one.workload.make_batch(0);
  for (const std::int64_t samples : {6, 3, 6}) {
    expected.step(batch.slice(0, samples));
    found.step(batch.slice(0, samples));
  }
  EXPECT_LT(strategies::largest_difference(found.state(), expected.state()), 1e-12);
}

TEST(BatchSizes, InputsThatStayOnTheDeviceAreLoadedAnewForAnotherBatch) {
  for (const auto& [strategy, devices] :
       std::vector<std::pair<std::string, int>>{{"pipeline", 2}, {"data_parallel", 2}}) {
    SCOPED_TRACE(strategy);
    Training one(small_workload("mlp", 6), 1);
    Training two(small_workload("mlp", 6), devices);
    strategies::Strategy& expected = one.make("single");
    strategies::Strategy& found =
        two.make(strategy, {.split_size = 2, .schedule = "1f1b", .inputs = "device"});
    const models::Batch first = one.workload.make_batch(0);
    for (const models::Batch& batch :
         {first, first, one.workload.make_batch(1), one.workload.make_batch(2), first}) {
      expected.step(batch);
      found.step(batch);
    }
    // As a loader does that writes its next batch where an earlier one was.
    for (const double factor : {1.0, 0.5}) {
      first.inputs.mul_(factor);
      expected.step(first.slice(0, 6));
      found.step(first.slice(0, 6));
      expected.state();  // synchronises: it is written to next
      found.state();
    }
    EXPECT_LT(strategies::largest_difference(found.state(), expected.state()), 1e-12);
  }
}

TEST(BatchSizes, ABatchThatIsNoneIsRefusedInOneLine) {
  for (const char* name : {"single", "pipeline", "data_parallel"}) {
    Training training(small_workload("mlp", 6), name == std::string("single") ? 1 : 2);
    strategies::Strategy& strategy = training.make(name, {.split_size = 2});
    const models::Batch whole = training.workload.make_batch(0);
    const auto refusal = [&](const models::Batch& batch) -> std::string {
      std::string told;
      try {
        strategy.evaluate(batch);
      } catch (const std::invalid_argument& error) {
        told = error.what();
      }
      try {
        strategy.step(batch);
      } catch (const std::invalid_argument& error) {
        return told == error.what() ? told : "told otherwise: " + told;
      }
      return "accepted";
    };
    EXPECT_EQ(refusal(whole.slice(0, 0)),
              "a batch has 0 inputs and 0 targets: expected equal numbers above 0");
    EXPECT_EQ(refusal({whole.inputs, whole.targets.narrow(0, 0, 5)}),
              "a batch has 6 inputs and 5 targets: expected equal numbers above 0");
    EXPECT_EQ(refusal({whole.inputs.narrow(0, 0, 4), whole.targets}),
              "a batch has 4 inputs and 6 targets: expected equal numbers above 0");
    strategy.step(whole);
    EXPECT_NO_THROW(strategy.state());
  }
}

}  // namespace
}  // namespace stratagem::stages::batch_sizes_test
