// Evaluations between steps and alone, and what the trainer makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/datasets/dataset.h"
#include "tests/strategies/training.h"
#include "training/loop/trainer.h"

namespace stratagem::training::evaluation_test {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::SizeIs;

/// A training that is kept in memory: 40 samples to train on in batches of 8, 10 to validate on.
struct Kept {
  strategies::Training training{classified_work(), 1};
  strategies::Strategy& strategy = training.make("single");
  datasets::Datasets data = data_of(50);
  std::vector<std::int64_t> saved = {};
  std::vector<std::int64_t> best = {};
  Position last = {};
  std::vector<ordered_json> lines = {};

  static datasets::Datasets data_of(std::int64_t samples) {
    return datasets::make_datasets({.samples = samples, .outputs = 5, .seed = 3, .validation = 0.2},
                                   "");
  }

  static models::WorkloadOptions classified_work() {
    models::WorkloadOptions work = strategies::small_workload("toy", 8);
    work.loss = models::Loss::cross_entropy;
    return work;
  }

  Outcome run(const TrainingOptions& options, const Position& start = {}) {
    lines.clear();
    return train({.workload = training.workload,
                  .strategy = strategy,
                  .devices = training.group.devices,
                  .start = start,
                  .save =
                      [&](const Position& at, auto) {
                        saved.push_back(at.step);
                        last = at;
                      },
                  .save_best = [&](const Position& at, auto) { best.push_back(at.step); },
                  .timeout = std::chrono::seconds(60)},
                 data, options, [&](const ordered_json& line) { lines.push_back(line); });
  }

  std::vector<double> losses() const {
    std::vector<double> found;
    for (const ordered_json& line : lines) {
      if (line.at("event") == "step") found.push_back(line.at("loss"));
    }
    return found;
  }

  std::vector<std::int64_t> steps_of(const char* event) const {
    std::vector<std::int64_t> steps;
    for (const ordered_json& line : lines) {
      if (line.at("event") == event) steps.push_back(line.at("step"));
    }
    return steps;
  }
};

TEST(Evaluation, ComesEverySoManyStepsAndAtTheEnd) {
  TrainingOptions options;
  options.epochs = 2;  // 10 steps
  options.evaluate_every = 4;
  Kept kept;
  kept.run(options);
  EXPECT_THAT(kept.steps_of("evaluation"), ElementsAre(0, 4, 8, 10));
  options.evaluate_every = 0;
  EXPECT_EQ(Kept().run(options).position.best.last_step, 10);
  Kept by_epochs;
  by_epochs.run(options);
  EXPECT_THAT(by_epochs.steps_of("evaluation"), ElementsAre(0, 5, 10));
}

// Evaluations between steps change neither the losses nor the final state.
TEST(Evaluation, LeavesTheCurveAsItIs) {
  TrainingOptions options;
  options.epochs = 2;
  Kept rarely;
  rarely.run(options);
  options.evaluate_every = 1;
  Kept often;
  often.run(options);
  EXPECT_EQ(often.losses(), rarely.losses());
  EXPECT_EQ(strategies::largest_difference(often.strategy.state(), rarely.strategy.state()), 0);
}

TEST(Evaluation, ThatIsTheBestIsSavedAndMarked) {
  TrainingOptions options;
  options.epochs = 4;
  options.evaluate_every = 2;
  Kept kept;
  const Outcome outcome = kept.run(options);
  std::vector<std::int64_t> expected;
  double smallest = INFINITY;
  for (const ordered_json& line : kept.lines) {
    if (line.at("event") != "evaluation") continue;
    const bool is_best = line.at("loss") < smallest;
    EXPECT_EQ(line.at("best"), is_best) << line;
    if (!is_best) continue;
    smallest = line.at("loss");
    expected.push_back(line.at("step"));
  }
  EXPECT_EQ(kept.best, expected);
  EXPECT_EQ(outcome.position.best.value, smallest);
  EXPECT_EQ(outcome.position.best.step, expected.back());
}

TEST(Evaluation, EndsTheTrainingAfterSoManyWithoutABetterOne) {
  TrainingOptions options;
  options.epochs = 4;
  options.evaluate_every = 3;
  options.early_stop = 2;
  options.checkpoint_every = 100;
  Kept kept;
  kept.data.test = kept.data.validation;
  options.evaluate_first = false;
  // Nothing is better than a loss of 0.
  const Outcome outcome =
      kept.run(options, {.best = {.monitor = "loss", .value = 0, .step = 0, .last_step = 0}});
  EXPECT_TRUE(outcome.stopped_early);
  EXPECT_EQ(outcome.stopped, "");
  EXPECT_EQ(outcome.position.step, 6);
  EXPECT_THAT(kept.saved, ElementsAre(6)) << "the last step's checkpoint";
  EXPECT_THAT(kept.steps_of("evaluation"), ElementsAre(3, 6, 6)) << "and of the test set";
  EXPECT_THAT(kept.best, ElementsAre());
  // What goes on from there has already ended, unless it may wait for longer.
  EXPECT_EQ(kept.run(options, kept.last).position.step, 6);
  options.early_stop = 3;
  EXPECT_EQ(kept.run(options, kept.last).position.step, 9);
}

TEST(Evaluation, ComesAloneWithoutTraining) {
  TrainingOptions options;
  options.evaluate_only = true;
  Kept kept;
  kept.data.test = kept.data.training;
  const strategies::StateDictionary before = kept.strategy.state();
  const Outcome outcome = kept.run(options);
  EXPECT_EQ(outcome.position.step, 0);
  ASSERT_THAT(kept.lines, SizeIs(2));
  EXPECT_EQ(kept.lines[0].at("split"), "validation");
  EXPECT_EQ(kept.lines[0].at("loss"), outcome.validation_loss);
  EXPECT_EQ(kept.lines[1].at("samples"), 40);
  EXPECT_EQ(strategies::largest_difference(kept.strategy.state(), before), 0);
}

}  // namespace
}  // namespace stratagem::training::evaluation_test
