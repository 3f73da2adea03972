// Trainer: epochs of steps and evaluations of one strategy on one data set, on every rank alike.
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

/// What somebody wants of a training that runs.
struct Requests {
  bool stop = false;  // it is to end
  bool save = false;  // a checkpoint
};

struct TrainerContext {
  const models::Workload& workload;
  strategies::Strategy& strategy;
  runtime::DeviceSpan devices;  // this rank's
  std::int64_t replicas = 1;    // each takes every so-manyth sample of a batch
  bool pinned = false;          // batches lie in page-locked memory
  Position start = {};          // the strategy's state is that of
  /// Keeps the strategy's state; called on every rank. May be empty. `scheduled_rate` is the
  /// learning rate of the next step, where a schedule sets it.
  std::function<void(const Position&, std::optional<double> scheduled_rate)> save = {};
  /// Likewise, as the best evaluation's.
  std::function<void(const Position&, std::optional<double> scheduled_rate)> save_best = {};
  /// Asked on every rank at each line of the log; what one is asked for, all do. May be empty.
  std::function<Requests()> requests = {};
  /// Sums numbers over the ranks, in place. Collective. Empty: there is one.
  std::function<void(std::span<double>)> sum_over_ranks = {};
  std::chrono::milliseconds timeout{120'000};
};

/// What is told of a training as it goes, a line of the log each; on every rank.
using Tell = std::function<void(const nlohmann::ordered_json&)>;

struct Outcome {
  Position position = {};
  double data_wait_ms = 0;          // of them: devices stood still for a batch
  std::int64_t stalled_steps = 0;   // that waited for more than a hundredth of their time
  LoaderWork loader = {};           // of their batches
  std::optional<double> loss = {};  // of the last step that was told; empty: none was left
  std::optional<double> validation_loss = {};  // the last, as are
  std::optional<double> accuracy = {};
  bool interrupted = false;    // somebody wanted it to end
  bool stopped_early = false;  // TrainingOptions::early_stop
  /// What went wrong so that it ended before its last step; empty: nothing.
  std::string stopped = {};
};

/// Trains. Lines have an `event`: epoch (batch, steps), step (loss, learning_rate, ...),
/// evaluation. With TrainingOptions::evaluate_only it evaluates what there is. Throws
/// std::invalid_argument for data that does not fit, before the first step.
Outcome train(const TrainerContext& context, const datasets::Datasets& data,
              const TrainingOptions& options, const Tell& tell);

}  // namespace stratagem::training
