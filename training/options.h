// The options of a training beside the row (bench/config/config.h): data, length, tails, learning
// rates, evaluations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/epoch.h"
#include "training/learning_rate.h"

namespace stratagem::training {

struct TrainingOptions {
  std::string data = "auto";         // auto: by the model's inputs; see datasets::DatasetOptions
  std::int64_t samples = 1000;       // the samples of random sets
  std::string token_dtype = "auto";  // the type of --data tokens
  double validation = 0;             // see datasets::DatasetOptions
  double test = 0;
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;  // 0: no limit
  std::string tail = "pad";    // pad, drop, exact
  bool shuffle = true;
  bool augment = false;                             // shifts and mirrors images
  std::string learning_rate_schedule = "constant";  // constant, step, linear, cosine, wsd
  std::int64_t warmup_steps = 0;
  double final_learning_rate = 0;
  std::int64_t schedule_steps = 0;  // the schedule's steps; 0: the training's
  std::int64_t evaluate_every = 0;  // steps; 0: at the ends of epochs
  bool evaluate_first = true;
  bool evaluate_only = false;    // trains nothing
  std::string monitor = "loss";  // the measure of the best evaluation: loss, accuracy
  std::int64_t early_stop = 0;   // evaluations without a better one before it ends; 0: no limit
  std::int64_t loader_threads = 1;
  std::int64_t prefetch = 2;          // batches
  std::int64_t log_every = 1;         // steps
  std::string checkpoint_dir = {};    // empty: no checkpoints
  bool checkpoint_first = false;      // also one of the start
  std::int64_t checkpoint_every = 0;  // steps; 0: at the ends of epochs
  std::int64_t keep = 0;              // checkpoints; 0: all
  bool keep_best = false;             // also the best evaluation's
  double checkpoint_timeout = 1800;   // the most seconds of a checkpoint
  std::string resume = {};            // the checkpoint to continue from; empty: none
  std::string initial_state = {};     // a file with the model to begin with; empty: none
  std::string stop_file = {};         // ends the training once this file exists on rank 0's host
  std::string save_file = {};         // saves a checkpoint once it exists there, and removes it
  std::string log = {};               // the path of the log, on rank 0

  /// Visits the options that a training that continues from a checkpoint must keep.
  template <class Self, class Visit>
  static void each_of_the_work(Self& self, Visit visit) {
    visit("validation", self.validation);
    visit("test", self.test);
    visit("tail", self.tail);
    visit("shuffle", self.shuffle);
    visit("augment", self.augment);
    visit("learning_rate_schedule", self.learning_rate_schedule);
    visit("warmup_steps", self.warmup_steps);
    visit("final_learning_rate", self.final_learning_rate);
    visit("schedule_steps", self.schedule_steps);
  }

  /// Visits the options that it may change. The data's content is compared, not its name; the
  /// number of steps affects only the learning rates, see schedule_of().
  template <class Self, class Visit>
  static void each_that_may_change(Self& self, Visit visit) {
    visit("data", self.data);
    visit("samples", self.samples);
    visit("token_dtype", self.token_dtype);
    visit("epochs", self.epochs);
    visit("max_steps", self.max_steps);
    visit("evaluate_every", self.evaluate_every);
    visit("evaluate_first", self.evaluate_first);
    visit("evaluate_only", self.evaluate_only);
    visit("monitor", self.monitor);
    visit("early_stop", self.early_stop);
    visit("loader_threads", self.loader_threads);
    visit("prefetch", self.prefetch);
    visit("log_every", self.log_every);
    visit("checkpoint_dir", self.checkpoint_dir);
    visit("checkpoint_first", self.checkpoint_first);
    visit("checkpoint_every", self.checkpoint_every);
    visit("keep", self.keep);
    visit("keep_best", self.keep_best);
    visit("checkpoint_timeout", self.checkpoint_timeout);
    visit("resume", self.resume);
    visit("initial_state", self.initial_state);
    visit("stop_file", self.stop_file);
    visit("save_file", self.save_file);
    visit("log", self.log);
  }

  template <class Self, class Visit>
  static void each_field(Self& self, Visit visit) {
    each_of_the_work(self, visit);
    each_that_may_change(self, visit);
  }
};

/// Return the choice of a name. Throw std::invalid_argument with the choices.
Tail tail_of(const std::string& name);
DecayKind decay_of(const std::string& name);
std::vector<std::string> tail_names();
std::vector<std::string> decay_names();

/// The most steps of a training: 30,000 years at a microsecond a step.
inline constexpr std::int64_t most_steps = 1'000'000'000'000'000'000;

/// Returns the steps of the whole training. Throws std::invalid_argument if --epochs makes them
/// more than `most_steps`.
std::int64_t steps_of(const TrainingOptions& options, const EpochShape& shape);

/// `base`: the optimizer's learning rate; `steps`: the training's. Throws std::invalid_argument for
/// a schedule that would never change the rate.
LearningRateSchedule schedule_of(const TrainingOptions& options, double base, std::int64_t steps);

}  // namespace stratagem::training
