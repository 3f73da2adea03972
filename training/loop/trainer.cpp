#include "training/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/distributed_sampler.h"
#include "training/epoch.h"
#include "training/loop/batch_stream.h"
#include "training/loop/not_finite.h"
#include "training/loop/steps_in_flight.h"

namespace stratagem::training {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Returns the limit of steps in flight: the running one and the next, so that a device never waits
/// for the host. Of small steps several are enqueued, so that not each wakes the host.
std::size_t most_in_flight(const datasets::SampleFormat& format, std::int64_t batch) {
  return is_made_at_once(format, batch) ? 16 : 2;
}

class Trainer {
 public:
  Trainer(const TrainerContext& context, const datasets::Datasets& data,
          const TrainingOptions& options, const Tell& tell)
      : context_(context),
        data_(data),
        options_(options),
        tell_(tell),
        shape_(epoch_shape()),
        steps_(steps_of(options, shape_)),
        rates_(schedule_of(options, workload().optimizer.learning_rate, steps_)),
        most_in_flight_(most_in_flight(data.training->format(), shape_.batch)),
        in_flight_(context.devices, context.timeout),
        saved_step_(context.start.step),
        outcome_{.position = context.start} {
    if (position().step > steps_) {
      throw std::invalid_argument(fmt::format(
          "the checkpoint is of step {}, and the training ends at step {}; raise --epochs "
          "or --max-steps",
          position().step, steps_));
    }
  }

  Outcome run() {
    if (options_.evaluate_only) {
      for (const auto& [split, data] :
           {std::pair{"validation", data_.validation}, std::pair{"test", data_.test}}) {
        evaluate(split, data);
      }
      return outcome_;
    }
    const std::int64_t each = steps_of_an_epoch(shape_);
    std::int64_t epoch = position().step / each;
    std::int64_t done = position().step % each;
    if (position().step == 0) {
      if (context_.save && options_.checkpoint_first) save();
      if (options_.evaluate_first) validate();
    } else if (is_evaluated()) {
      validate();  // a checkpoint is written before the evaluation of its step
    }
    for (; goes_on() && position().step < steps_; ++epoch, done = 0) {
      train_epoch(epoch, done);
      if (goes_on() && is_evaluated()) validate();
    }
    if (outcome_.stopped_early && context_.save && saved_step_ != position().step) save();
    if (goes_on() || outcome_.stopped_early) evaluate("test", data_.test);
    return outcome_;
  }

 private:
  const models::WorkloadOptions& workload() const { return context_.workload.options(); }

  EpochShape epoch_shape() const {
    return {.samples = data_.training->size(),
            .batch = workload().batch,
            .replicas = context_.replicas,
            .tail = tail_of(options_.tail)};
  }

  std::vector<std::int64_t> order_of(std::int64_t epoch) const {
    models::DistributedSampler sampler(
        {.samples = data_.training->size(), .shuffle = options_.shuffle, .seed = workload().seed});
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    return sampler.indices();
  }

  BatchStream stream(const datasets::Dataset& data, std::vector<BatchIndices> batches,
                     std::int64_t epoch, bool augment) const {
    return {context_.workload,
            context_.strategy,
            data,
            std::move(batches),
            {.replicas = context_.replicas,
             .pinned = context_.pinned,
             .augment = augment,
             .epoch = static_cast<std::uint64_t>(epoch),
             .threads = options_.loader_threads,
             .prefetch = options_.prefetch,
             .in_use = most_in_flight_,
             .timeout = context_.timeout}};
  }

  Position& position() { return outcome_.position; }
  bool goes_on() const {
    return outcome_.stopped.empty() && !outcome_.interrupted && !outcome_.stopped_early;
  }

  /// Returns whether the validation set is evaluated after the last step.
  bool is_evaluated() {
    const std::int64_t every =
        options_.evaluate_every == 0 ? steps_of_an_epoch(shape_) : options_.evaluate_every;
    return data_.validation && (position().step == steps_ || position().step % every == 0);
  }

  /// Trains the epoch's steps from step `done` on.
  void train_epoch(std::int64_t epoch, std::int64_t done) {
    const double before = position().seconds;
    start_ = before_step_ = Clock::now();
    std::vector<BatchIndices> all = batches_of_an_epoch(order_of(epoch), shape_);
    const std::int64_t left = steps_ - position().step + done;
    all.resize(std::min(all.size(), static_cast<std::size_t>(left)));
    if (done == 0) {
      tell_({{"event", "epoch"},
             {"epoch", epoch},
             {"batch", shape_.batch},
             {"replicas", shape_.replicas},
             {"steps", all.size()}});
    }
    all.erase(all.begin(), all.begin() + done);
    BatchStream batches = stream(*data_.training, std::move(all), epoch, options_.augment);
    for (std::size_t index = 0; index < batches.batches() && goes_on(); ++index) {
      step(next_of(batches));
      const bool last = index + 1 == batches.batches();
      const bool keeps = is_kept(last);
      const bool evaluates = !last && is_evaluated();
      const bool is_due = position().step == 1 || position().step % options_.log_every == 0;
      if (!last && !keeps && !evaluates && !is_due) continue;
      in_flight_.wait_until_left(0);
      position().seconds = before + seconds(Clock::now() - start_);
      const Requests asked = tell_of(epoch);
      outcome_.interrupted = asked.stop && outcome_.stopped.empty();
      if (context_.save && (keeps || asked.stop || asked.save) && outcome_.stopped.empty()) {
        save();
      }
      if (evaluates && goes_on()) {
        const auto began = Clock::now();
        validate();
        start_ += Clock::now() - began;
        before_step_ = Clock::now();
      }
    }
    add(outcome_.loader, batches.worked());
  }

  /// Returns the next batch; the one that it replaces is no longer in use.
  models::Batch next_of(BatchStream& batches) {
    if (in_flight_.size() == most_in_flight_) in_flight_.wait_until_left(most_in_flight_ / 2);
    const auto asked = Clock::now();
    models::Batch batch = batches.next();
    const auto came = Clock::now();
    if (const auto idle = in_flight_.idle_since()) {
      note_wait(std::max(came - std::max({asked, *idle, start_}), Clock::duration::zero()),
                came - before_step_);
    }
    before_step_ = came;
    return batch;
  }

  /// `step`: the time since the batch before.
  void note_wait(Clock::duration waited, Clock::duration step) {
    constexpr double stall = 0.01;  // fraction of a step
    waited_ms_ += 1e3 * seconds(waited);
    if (seconds(waited) > stall * seconds(step)) ++outcome_.stalled_steps;
  }

  /// Saves a checkpoint while no step is in flight.
  void save() {
    context_.save(position(), scheduled_rate());
    saved_step_ = position().step;
  }

  /// Returns the next step's learning rate if a schedule sets it.
  std::optional<double> scheduled_rate() {
    if (is_constant(rates_)) return std::nullopt;
    return learning_rate(rates_, updates());
  }

  /// Returns whether a checkpoint is due: at its interval, else at epochs' ends; and at the end.
  bool is_kept(bool epochs_last) {
    if (!context_.save) return false;
    if (position().step == steps_) return true;
    return options_.checkpoint_every == 0 ? epochs_last
                                          : position().step % options_.checkpoint_every == 0;
  }

  void step(models::Batch batch) {
    rate_ = learning_rate(rates_, updates());
    batch.number = position().step++;
    batch.dealt_to = shape_.replicas;
    position().samples += batch.size();
    context_.strategy.set_learning_rate(rate_);
    in_flight_.add(context_.strategy.step(batch), batch.size());
  }

  /// Returns the number of updates, which the schedule counts, without the skipped ones. A step
  /// must have ended before it is known to be skipped.
  std::int64_t updates() {
    if (!workload().dynamic_loss_scale || is_constant(rates_)) return position().step;
    in_flight_.wait_until_left(0);
    return position().step - position().skipped - in_flight_.ended().skipped;
  }

  /// Reports the steps since the last line and returns the same requests on every rank.
  Requests tell_of(std::int64_t epoch) {
    const EndedSteps steps = in_flight_.take_ended();
    const Requests own = context_.requests ? context_.requests() : Requests();
    std::array sums{steps.own_sum, own.stop ? 1.0 : 0.0, own.save ? 1.0 : 0.0,
                    steps.not_finite ? 1.0 : 0.0};
    if (context_.sum_over_ranks) context_.sum_over_ranks(sums);
    const double loss = sums[0] / static_cast<double>(steps.samples);
    outcome_.loss = loss;
    position().skipped += steps.skipped;
    const double waited = std::exchange(waited_ms_, 0);
    outcome_.data_wait_ms += waited;
    ordered_json line{{"event", "step"},
                      {"epoch", epoch},
                      {"step", position().step},
                      {"of", steps_},
                      {"samples", position().samples},
                      {"seconds", position().seconds},
                      {"loss", loss},
                      {"batch", steps.last_batch},
                      {"learning_rate", rate_},
                      {"data_wait_ms", waited}};
    if (workload().optimizer.clip_norm > 0) line["gradient_norm"] = steps.gradient_norm;
    if (workload().dynamic_loss_scale) line["skipped_updates"] = steps.skipped;
    tell_(line);
    if (!std::isfinite(loss) || sums[3] > 0) {
      outcome_.stopped = why_it_stops(
          loss, epoch,
          position().step - steps.steps + 1 + steps.not_finite.value_or(steps.steps - 1));
    }
    return {.stop = sums[1] > 0, .save = sums[2] > 0};
  }

  /// `step`: the first one whose gradient norm is not finite, or the last one.
  std::string why_it_stops(double loss, std::int64_t epoch, std::int64_t step) {
    return fmt::format(
        "{} at step {} (epoch {}){}; a smaller --learning-rate may help",
        std::isfinite(loss) ? "the norm of the gradients is not finite"
                            : fmt::format("the loss is {}", loss),
        step, epoch,
        not_finite_entries(context_.workload, context_.strategy, context_.sum_over_ranks));
  }

  /// Evaluates and judges the validation set. All ranks have the same numbers.
  void validate() {
    if (!data_.validation) return;
    ordered_json line = evaluation_of("validation", *data_.validation);
    BestEvaluation& best = position().best;
    const double found =
        options_.monitor == "loss" ? *outcome_.validation_loss : outcome_.accuracy.value_or(0);
    const bool improves = best.count(options_.monitor, found, position().step);
    line["best"] = best.step == position().step;
    tell_(line);
    if (improves && context_.save_best) context_.save_best(position(), scheduled_rate());
    outcome_.stopped_early =
        options_.early_stop > 0 && best.without_improvement >= options_.early_stop;
  }

  void evaluate(const char* split, const datasets::DatasetPointer& data) {
    if (data) tell_(evaluation_of(split, *data));
  }

  /// Evaluates every sample once: sums over batches, divided by the totals. Returns the log's line.
  ordered_json evaluation_of(const std::string& split, const datasets::Dataset& data) {
    const std::int64_t each = steps_of_an_epoch(shape_);
    const std::int64_t epoch = (position().step + each - 1) / each;
    std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
    std::iota(order.begin(), order.end(), 0);
    const EpochShape whole{.samples = data.size(),
                           .batch = shape_.batch,
                           .replicas = context_.replicas,
                           .tail = Tail::exact};
    BatchStream batches = stream(data, batches_of_an_epoch(std::move(order), whole), epoch, false);
    const auto start = Clock::now();
    double sum = 0;
    std::int64_t correct = 0;
    std::int64_t positions = 0;
    for (std::size_t index = 0; index < batches.batches(); ++index) {
      const models::Batch batch = batches.next();
      const strategies::Evaluation found = context_.strategy.evaluate(batch);
      sum += found.loss * static_cast<double>(batch.size());
      correct += found.correct;
      positions += batch.targets.dim() == 2 && !batch.targets.is_floating_point()
                       ? batch.targets.numel()
                       : batch.size();
    }
    const double loss = sum / static_cast<double>(data.size());
    ordered_json line{{"event", "evaluation"},   {"split", split},         {"epoch", epoch},
                      {"step", position().step}, {"samples", data.size()}, {"loss", loss}};
    const bool classes = workload().targets == models::Targets::classes;
    if (classes) {
      line["correct"] = correct;
      line["positions"] = positions;
    }
    line["seconds"] = seconds(Clock::now() - start);
    if (split == "validation") {
      outcome_.validation_loss = loss;
      if (classes) {
        outcome_.accuracy = static_cast<double>(correct) / static_cast<double>(positions);
      }
    }
    return line;
  }

  const TrainerContext& context_;
  const datasets::Datasets& data_;
  const TrainingOptions& options_;
  const Tell& tell_;
  EpochShape shape_;
  std::int64_t steps_;  // the steps of the whole training
  LearningRateSchedule rates_;
  std::size_t most_in_flight_;
  StepsInFlight in_flight_;
  Clock::time_point start_;        // the start of the epoch's steps
  Clock::time_point before_step_;  // the arrival of the last batch
  double rate_ = 0;                // the last step's learning rate
  double waited_ms_ = 0;           // waits for batches since the last line
  std::int64_t saved_step_;        // the step of the last checkpoint, or of the one resumed from
  Outcome outcome_;
};

}  // namespace

Outcome train(const TrainerContext& context, const datasets::Datasets& data,
              const TrainingOptions& options, const Tell& tell) {
  return Trainer(context, data, options, tell).run();
}

}  // namespace stratagem::training
