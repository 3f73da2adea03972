// Trainer: epochs of steps and evaluations of one strategy on one data set, on every rank alike.
//
// The order of samples, the batch of a step and its learning rate are functions of seed, epoch and
// step, so that every strategy on every mesh trains the same samples in the same steps.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "models/datasets/dataset.h"
#include "strategies/strategy.h"
#include "training/options.h"
#include "training/position.h"

namespace stratagem::training {

struct TrainerContext {
  const models::Workload& workload;
  strategies::Strategy& strategy;
  std::function<void()> synchronize;  // with this rank's devices
  std::int64_t replicas = 1;          // each takes every so-manyth sample of a batch
  bool pinned = false;                // batches lie in page-locked memory
  Position start = {};                // the strategy's state is that of
  /// Keeps the strategy's state; called on every rank. May be empty.
  std::function<void(const Position&)> save = {};
  /// Whether the training is to end; asked on every rank at each line of the log, and the same on
  /// all. May be empty.
  std::function<bool()> should_stop = {};
  std::chrono::milliseconds timeout{120'000};
};

/// What is told of a training as it goes, a line of the log each; on every rank.
using Tell = std::function<void(const nlohmann::ordered_json&)>;

struct Outcome {
  Position position = {};
  double data_wait_ms = 0;                     // of them
  double loss = 0;                             // of the last step that was told
  std::optional<double> validation_loss = {};  // the last, as are
  std::optional<double> accuracy = {};
  bool interrupted = false;  // somebody wanted it to end
  /// What went wrong so that it ended before its last step; empty: nothing.
  std::string stopped = {};
};

/// Trains. Lines have an `event`: epoch (batch, steps), step (loss, learning_rate, ...),
/// evaluation. Throws std::invalid_argument for data that does not fit, before the first step.
Outcome train(const TrainerContext& context, const datasets::Datasets& data,
              const TrainingOptions& options, const Tell& tell);

}  // namespace stratagem::training
