// Trainer: runs epochs of steps and evaluations of one strategy on one data set, on every rank.
//
// The order of samples, the batch of a step and its learning rate are functions of seed, epoch and
// step, so that every strategy on every mesh trains the same samples in the same steps.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "models/datasets/dataset.h"
#include "strategies/strategy.h"
#include "training/loader.h"
#include "training/options.h"
#include "training/position.h"

namespace stratagem::training {

/// The requests to a running training.
struct Requests {
  bool stop = false;  // end the training
  bool save = false;  // save a checkpoint
};

struct TrainerContext {
  const models::Workload& workload;
  strategies::Strategy& strategy;
  runtime::DeviceSpan devices;  // this rank's devices
  std::int64_t replicas = 1;    // each takes every replicas-th sample of a batch
  bool pinned = false;          // batches lie in page-locked memory
  Position start = {};          // the position of the strategy's state
  /// Saves the strategy's state; called on every rank. May be empty. `scheduled_rate` is the
  /// learning rate of the next step, if a schedule sets it.
  std::function<void(const Position&, std::optional<double> scheduled_rate)> save = {};
  /// Saves the best evaluation's state, with the same arguments.
  std::function<void(const Position&, std::optional<double> scheduled_rate)> save_best = {};
  /// Called on every rank at each line of the log; all ranks follow one's request. May be empty.
  std::function<Requests()> requests = {};
  /// Sums numbers over the ranks, in place. Collective. Empty for one rank.
  std::function<void(std::span<double>)> sum_over_ranks = {};
  std::chrono::milliseconds timeout{120'000};
};

/// Receives each line of the log, on every rank.
using Tell = std::function<void(const nlohmann::ordered_json&)>;

struct Outcome {
  Position position = {};
  double data_wait_ms = 0;          // the time that devices stood idle for a batch
  std::int64_t stalled_steps = 0;   // steps that waited for more than a hundredth of their time
  LoaderWork loader = {};           // the loading of the batches
  std::optional<double> loss = {};  // the last reported loss; empty: no step was left
  std::optional<double> validation_loss = {};  // the last evaluation's, like accuracy
  std::optional<double> accuracy = {};
  bool interrupted = false;    // a request ended it
  bool stopped_early = false;  // see TrainingOptions::early_stop
  /// The error that ended it before its last step; empty if there was none.
  std::string stopped = {};
};

/// Trains, or with TrainingOptions::evaluate_only evaluates. Lines have an `event`: epoch (batch,
/// steps), step (loss, learning_rate, ...), evaluation. Throws std::invalid_argument before the
/// first step if the data does not fit.
Outcome train(const TrainerContext& context, const datasets::Datasets& data,
              const TrainingOptions& options, const Tell& tell);

}  // namespace stratagem::training
