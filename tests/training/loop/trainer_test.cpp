#include "training/loop/trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/datasets/dataset.h"
#include "models/distributed_sampler.h"
#include "tests/strategies/training.h"
#include "training/epoch.h"
#include "training/learning_rate.h"
#include "training/loop/batch_maker.h"

namespace stratagem::training::trainer_test {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::int64_t features = 10;  // of the model that is trained here, as are
constexpr std::int64_t classes = 5;

datasets::Datasets random_data(std::int64_t samples, bool real, double validation = 0) {
  datasets::DatasetOptions options;
  options.samples = samples;
  options.features = features;
  options.outputs = classes;
  options.real_targets = real;
  options.seed = 3;
  options.validation = validation;
  return datasets::make_datasets(options, "");
}

struct Trained {
  Outcome outcome = {};
  std::vector<ordered_json> lines = {};
  strategies::StateDictionary state = {};

  std::vector<double> all(const char* event, const char* field) const {
    std::vector<double> found;
    for (const ordered_json& line : lines) {
      if (line.at("event") == event) found.push_back(line.at(field));
    }
    return found;
  }
};

struct Wanted {
  std::string strategy = "single";
  int devices = 1;
  std::int64_t batch = 8;
  models::Loss loss = models::Loss::cross_entropy;
  bool real = false;
};

Trained trained(const Wanted& wanted, const datasets::Datasets& data,
                const TrainingOptions& options) {
  models::WorkloadOptions work = strategies::small_workload("toy", wanted.batch);
  work.loss = wanted.loss;
  work.targets = wanted.real ? models::Targets::real : models::Targets::classes;
  strategies::Training training(work, wanted.devices);
  strategies::Strategy& strategy =
      training.make(wanted.strategy, {.split_size = 3, .schedule = "1f1b"});
  Trained result;
  const std::chrono::seconds limit(60);
  result.outcome =
      train({.workload = training.workload,
             .strategy = strategy,
             .devices = training.group.devices,
             .timeout = limit},
            data, options, [&](const ordered_json& line) { result.lines.push_back(line); });
  result.state = strategy.state();
  return result;
}

class EveryTail : public testing::TestWithParam<const char*> {};

// 43 samples in batches of 8: the last has 3, unless it is dropped.
TEST_P(EveryTail, TrainsToTheSameLossesByEveryStrategy) {
  const datasets::Datasets data = random_data(54, false, 0.2);
  TrainingOptions options;
  options.tail = GetParam();
  options.epochs = 3;
  options.learning_rate_schedule = "cosine";
  options.loader_threads = 2;
  const Trained expected = trained({}, data, options);
  const std::size_t steps = options.tail == "drop" ? 15 : 18;
  EXPECT_THAT(expected.all("step", "loss"), SizeIs(steps));
  for (const auto& [strategy, devices] :
       {std::pair{"data_parallel", 2}, std::pair{"data_parallel", 3},
        std::pair{"model_parallel", 2}, std::pair{"pipeline", 2}}) {
    SCOPED_TRACE(testing::Message() << strategy << " on " << devices);
    const Trained found = trained({.strategy = strategy, .devices = devices}, data, options);
    for (const char* event : {"step", "evaluation"}) {
      EXPECT_THAT(found.all(event, "loss"),
                  testing::Pointwise(testing::DoubleNear(1e-9), expected.all(event, "loss")));
    }
    EXPECT_EQ(found.all("evaluation", "correct"), expected.all("evaluation", "correct"));
    EXPECT_LT(strategies::largest_difference(found.state, expected.state), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Tails, EveryTail, testing::Values("pad", "drop", "exact"));

TEST(Trainer, AnEpochsLastBatchIsShort) {
  const Trained found =
      trained({.batch = 30, .loss = models::Loss::mse, .real = true}, random_data(100, true), {});
  EXPECT_THAT(found.all("step", "batch"), ElementsAre(30, 30, 30, 10));
  EXPECT_THAT(found.all("step", "samples"), ElementsAre(30, 60, 90, 100));
  EXPECT_THAT(found.all("epoch", "steps"), ElementsAre(4));
  EXPECT_EQ(found.outcome.position.step, 4);
}

// The mean of the batches' means is another number.
TEST(Trainer, EvaluationCountsEverySampleOnce) {
  datasets::Datasets data = random_data(1001, false);
  data.validation = data.training;
  TrainingOptions options;
  options.max_steps = 1;
  const Trained whole = trained({.batch = 1001}, data, options);
  const auto before = [](const Trained& of, const char* field) {
    return of.all("evaluation", field).front();
  };
  for (const auto& [strategy, devices, batch] :
       {std::tuple{"single", 1, 64}, std::tuple{"data_parallel", 3, 48},
        std::tuple{"pipeline", 2, 7}}) {
    SCOPED_TRACE(testing::Message() << strategy << " in batches of " << batch);
    const Trained found =
        trained({.strategy = strategy, .devices = devices, .batch = batch}, data, options);
    EXPECT_NEAR(before(found, "loss"), before(whole, "loss"), 1e-12);
    EXPECT_EQ(before(found, "correct"), before(whole, "correct"));
    EXPECT_EQ(before(found, "positions"), 1001);
  }
}

TEST(Trainer, EveryEpochHasAnOrderOfItsOwnUnlessItIsNotShuffled) {
  const datasets::Datasets data = random_data(24, false);
  TrainingOptions options;
  options.epochs = 2;
  const auto first_loss = [&](bool shuffle, std::int64_t batch) {
    options.shuffle = shuffle;
    return trained({.batch = batch}, data, options).all("step", "loss").front();
  };
  EXPECT_NE(first_loss(true, 8), first_loss(false, 8));
  EXPECT_NEAR(first_loss(true, 24), first_loss(false, 24), 1e-12);
}

// At a rate of 0 a step's loss is that of its samples: neither batches that have changed places nor
// an epoch with another one's order have it.
TEST(Trainer, EveryStepTrainsTheSamplesOfItsBatch) {
  constexpr std::int64_t samples = 43;
  const datasets::Datasets data = random_data(samples, false);
  models::WorkloadOptions work = strategies::small_workload("toy", 8);
  work.loss = models::Loss::cross_entropy;
  work.optimizer = {.learning_rate = 0};
  strategies::Training training(work, 1);
  strategies::Strategy& strategy = training.make("single");
  std::vector<double> losses;
  TrainingOptions options;
  options.epochs = 3;
  options.loader_threads = 3;
  options.prefetch = 4;
  train({.workload = training.workload, .strategy = strategy, .devices = training.group.devices},
        data, options, [&](const ordered_json& line) {
          if (line.at("event") == "step") losses.push_back(line.at("loss"));
        });
  BatchMaker maker(training.workload, *data.training, {.largest = 8});
  models::DistributedSampler sampler({.samples = samples, .seed = work.seed});
  std::vector<double> expected;
  for (const std::uint64_t epoch : {0U, 1U, 2U}) {
    sampler.set_epoch(epoch);
    for (const BatchIndices& batch :
         batches_of_an_epoch(sampler.indices(), {.samples = samples, .batch = 8})) {
      const std::int64_t size = std::ssize(batch);
      maker.fill(0, batch, std::vector<schedules::Slice>{{0, size}}, epoch);
      expected.push_back(strategy.evaluate(maker.batch(0, size)).loss);
    }
  }
  EXPECT_THAT(losses, testing::Pointwise(testing::DoubleNear(1e-12), expected));
}

TEST(Trainer, LinesAreAboutAsManyStepsAsTheyAreAskedFor) {
  const datasets::Datasets data = random_data(56, false);  // 7 steps
  TrainingOptions options;
  const Trained each = trained({}, data, options);
  options.log_every = 3;
  const Trained some = trained({}, data, options);
  EXPECT_THAT(some.all("step", "step"), ElementsAre(1, 3, 6, 7));  // and the start
  const std::vector<double> losses = each.all("step", "loss");
  EXPECT_NEAR(some.all("step", "loss")[1], (losses[1] + losses[2]) / 2, 1e-12);
}

/// Takes its time over each sample.
class Slow final : public datasets::Dataset {
 public:
  Slow(datasets::DatasetPointer whole, std::chrono::milliseconds each)
      : whole_(std::move(whole)), each_(each) {}

  const datasets::SampleFormat& format() const override { return whole_->format(); }
  std::int64_t size() const override { return whole_->size(); }
  datasets::Sample sample(std::int64_t index) const override {
    std::this_thread::sleep_for(each_);
    return whole_->sample(index);
  }

 private:
  datasets::DatasetPointer whole_;
  std::chrono::milliseconds each_;
};

// A step of this model is far shorter than the 64 ms that a batch takes.
TEST(Trainer, ASlowDataSetShowsItsStall) {
  datasets::Datasets data = random_data(48, false);
  data.training = std::make_shared<Slow>(data.training, std::chrono::milliseconds(8));
  const Trained found = trained({}, data, {});
  const Outcome& outcome = found.outcome;
  EXPECT_EQ(outcome.stalled_steps, 6);
  EXPECT_EQ(outcome.loader.batches, 6U);
  EXPECT_GE(outcome.loader.elapsed, std::chrono::milliseconds(6 * 64));
  const double total_ms = 1e3 * outcome.position.seconds;
  EXPECT_GE(total_ms, 6 * 64);
  EXPECT_LE(outcome.data_wait_ms, total_ms);
  EXPECT_GE(outcome.data_wait_ms, 6 * 64);
  double told_ms = 0;
  for (const double waited : found.all("step", "data_wait_ms")) told_ms += waited;
  EXPECT_NEAR(told_ms, outcome.data_wait_ms, 1e-6);
}

TEST(Trainer, WhatIsAskedForIsDoneAtTheNextLine) {
  const datasets::Datasets data = random_data(64, false);
  TrainingOptions options;
  options.log_every = 2;
  std::vector<std::int64_t> saved;
  int lines = 0;
  strategies::Training training(strategies::small_workload("toy", 8), 1);
  const std::chrono::seconds limit(60);
  const Outcome outcome =
      train({.workload = training.workload,
             .strategy = training.make("single"),
             .devices = training.group.devices,
             .save = [&](const Position& at, auto) { saved.push_back(at.step); },
             .requests =
                 [&] {
                   ++lines;  // of steps 1, 2, 4 and 6
                   return Requests{.stop = lines == 4, .save = lines == 3};
                 },
             .timeout = limit},
            data, options, [](const ordered_json&) {});
  EXPECT_THAT(saved, ElementsAre(4, 6));
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.position.step, 6);
}

TEST(Trainer, ALossThatIsNotFiniteEndsTheTraining) {
  models::WorkloadOptions work = strategies::small_workload("toy", 8);
  TrainingOptions options;
  options.epochs = 50;
  datasets::Datasets data = random_data(64, true);
  work.targets = models::Targets::real;
  work.optimizer = {.learning_rate = 1e30};
  strategies::Training diverging(work, 1);
  strategies::Strategy& strategy = diverging.make("single");
  const std::chrono::seconds limit(60);
  const Outcome outcome = train({.workload = diverging.workload,
                                 .strategy = strategy,
                                 .devices = diverging.group.devices,
                                 .timeout = limit},
                                data, options, [](const ordered_json&) {});
  EXPECT_LT(outcome.position.step, 400);
  EXPECT_THAT(outcome.stopped, testing::HasSubstr("at step"));
}

TEST(Trainer, TheScheduleGoesByUpdatesOfWhichASkippedStepIsNone) {
  models::WorkloadOptions work = strategies::small_workload("toy", 8);
  work.dtype = at::kHalf;
  work.mixed = true;
  work.loss_scale = 0x1p40;
  work.dynamic_loss_scale = true;
  work.targets = models::Targets::real;
  work.optimizer = {.learning_rate = 0.01};
  TrainingOptions options;
  options.epochs = 8;  // of 8 steps
  options.learning_rate_schedule = "linear";
  options.warmup_steps = 20;
  strategies::Training training(work, 1);
  Trained found;
  std::vector<std::optional<double>> saved;
  found.outcome = train({.workload = training.workload,
                         .strategy = training.make("single"),
                         .devices = training.group.devices,
                         .save = [&](const Position&, auto rate) { saved.push_back(rate); },
                         .timeout = std::chrono::seconds(60)},
                        random_data(64, true), options, [&](const ordered_json& line) {
                          if (line.at("event") == "step") found.lines.push_back(line);
                        });
  ASSERT_THAT(found.lines, SizeIs(64));
  const LearningRateSchedule schedule{
      .kind = DecayKind::linear, .base = 0.01, .warm_up = 20, .steps = 64};
  std::int64_t updates = 0;
  std::vector<std::optional<double>> next_rates;
  for (const ordered_json& line : found.lines) {
    EXPECT_EQ(line.at("learning_rate"), learning_rate(schedule, updates)) << line;
    updates += 1 - line.at("skipped_updates").get<std::int64_t>();
    if (line.at("step").get<int>() % 8 == 0) next_rates.push_back(learning_rate(schedule, updates));
  }
  EXPECT_EQ(saved, next_rates) << "a checkpoint has the learning rate of the next step";
  EXPECT_EQ(found.outcome.position.step, 64);
  EXPECT_EQ(found.outcome.position.skipped, 64 - updates);
  EXPECT_GT(updates, 20);
  EXPECT_LT(updates, 60);
  EXPECT_TRUE(found.outcome.stopped.empty()) << found.outcome.stopped;
}

TEST(Trainer, DataThatTheModelDoesNotTakeIsRefused) {
  datasets::DatasetOptions options;
  options.features = 7;
  try {
    trained({}, datasets::make_datasets(options, ""), {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--data: the model toy expects 10 features, but the data set has 7");
  }
}

}  // namespace
}  // namespace stratagem::training::trainer_test
