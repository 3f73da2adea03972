#include "training/loop/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/distributed_sampler.h"
#include "training/epoch.h"
#include "training/loader.h"
#include "training/loop/batch_maker.h"

namespace stratagem::training {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The batches of an epoch or of an evaluation, one after another, as this rank reads them.
class BatchStream {
 public:
  struct Options {
    bool augment = false;
    std::uint64_t epoch = 0;
    std::int64_t threads = 1;
    std::int64_t prefetch = 2;
  };

  BatchStream(const TrainerContext& context, const datasets::Dataset& data,
              std::vector<BatchIndices> batches, const Options& options)
      : batches_(std::move(batches)),
        rows_(rows_of(context, batches_)),
        maker_(context.workload, data,
               {.slots = static_cast<std::size_t>(options.prefetch) + 1,
                .largest = static_cast<std::int64_t>(batches_.front().size()),
                .pinned = context.pinned,
                .augment = options.augment}),
        loader_(batches_.size(),
                {.threads = static_cast<std::size_t>(options.threads),
                 .prefetch = static_cast<std::size_t>(options.prefetch),
                 .timeout = context.timeout},
                [this, epoch = options.epoch](std::size_t batch, std::size_t slot) {
                  maker_.fill(slot, batches_[batch], rows_.at(batches_[batch].size()), epoch);
                }) {}

  std::size_t batches() const { return batches_.size(); }
  /// What was handed out before must not be in use any more.
  models::Batch next() {
    const auto samples = static_cast<std::int64_t>(batches_[next_++].size());
    return maker_.batch(loader_.next(), samples);
  }
  double waited_ms() const { return 1e3 * seconds(loader_.waited()); }

 private:
  /// The rows of this rank's replica; a process with all replicas has them all. By samples.
  static std::map<std::size_t, std::vector<schedules::Slice>> rows_of(
      const TrainerContext& context, const std::vector<BatchIndices>& batches) {
    std::map<std::size_t, std::vector<schedules::Slice>> rows;
    for (const BatchIndices& batch : batches) {
      const auto [entry, is_new] = rows.try_emplace(batch.size());
      if (!is_new) continue;
      for (const auto& slice :
           context.strategy.batch_partition(static_cast<std::int64_t>(batch.size()))) {
        const bool own = context.replicas == 1 || slice.replica == context.strategy.replica();
        if (own) entry->second.push_back(slice);
      }
    }
    return rows;
  }

  std::vector<BatchIndices> batches_;
  std::map<std::size_t, std::vector<schedules::Slice>> rows_;
  std::size_t next_ = 0;
  BatchMaker maker_;
  Loader loader_;  // last: its threads use the rest
};

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
        outcome_{.position = context.start} {}

  Outcome run() {
    const std::int64_t each = steps_of_an_epoch(shape_);
    std::int64_t epoch = position().step / each;
    std::int64_t done = position().step % each;
    if (position().step == 0) {
      if (context_.save && options_.checkpoint_first) context_.save(position());
      if (options_.evaluate_first) evaluate("validation", data_.validation, 0);
    }
    // A checkpoint at an epoch's end was written before what follows it.
    if (position().step > 0 && done == 0) end_epoch(epoch);
    for (; goes_on() && position().step < steps_; ++epoch, done = 0) {
      train_epoch(epoch, done);
      if (goes_on()) end_epoch(epoch + 1);
    }
    if (goes_on()) evaluate("test", data_.test, options_.epochs);
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
    return {context_,
            data,
            std::move(batches),
            {.augment = augment,
             .epoch = static_cast<std::uint64_t>(epoch),
             .threads = options_.loader_threads,
             .prefetch = options_.prefetch}};
  }

  Position& position() { return outcome_.position; }
  bool goes_on() const { return outcome_.stopped.empty() && !outcome_.interrupted; }

  void end_epoch(std::int64_t epochs) {
    const bool last = position().step == steps_;
    if (last || epochs % options_.evaluate_every == 0) {
      evaluate("validation", data_.validation, epochs);
    }
  }

  /// The epoch's steps but for those that are done.
  void train_epoch(std::int64_t epoch, std::int64_t done) {
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
    const auto start = Clock::now();
    const double before = position().seconds;
    Told told{.waited_before_ms = 0};
    for (std::size_t index = 0; index < batches.batches(); ++index) {
      step(batches.next(), told);
      position().seconds = before + seconds(Clock::now() - start);
      const bool last = index + 1 == batches.batches();
      const bool keeps = is_kept(last);
      if (last || keeps || position().step % options_.log_every == 0) {
        tell_of(told, epoch, batches.waited_ms());
        outcome_.interrupted = context_.should_stop && context_.should_stop();
      }
      if (context_.save && (keeps || outcome_.interrupted) && outcome_.stopped.empty()) {
        context_.save(position());
      }
      if (!goes_on()) return;
    }
  }

  /// Whether a checkpoint is due: every so many steps, else at the ends of epochs; and at the end.
  bool is_kept(bool epochs_last) {
    if (!context_.save) return false;
    if (position().step == steps_) return true;
    return options_.checkpoint_every == 0 ? epochs_last
                                          : position().step % options_.checkpoint_every == 0;
  }

  /// The steps since the last line.
  struct Told {
    std::vector<std::pair<std::unique_ptr<strategies::PendingStep>, std::int64_t>> steps = {};
    double waited_before_ms = 0;
    double rate = 0;
  };

  void step(const models::Batch& batch, Told& told) {
    told.rate = learning_rate(rates_, position().step++);
    position().samples += batch.size();
    context_.strategy.set_learning_rate(told.rate);
    told.steps.emplace_back(context_.strategy.step(batch), batch.size());
    context_.synchronize();  // the batch's memory is used again
  }

  void tell_of(Told& told, std::int64_t epoch, double waited_ms) {
    double sum = 0;
    std::int64_t samples = 0;
    for (const auto& [pending, size] : told.steps) {
      sum += pending->loss() * static_cast<double>(size);
      samples += size;
    }
    outcome_.loss = sum / static_cast<double>(samples);
    const double gradient_norm = told.steps.back().first->gradient_norm();
    const double waited = waited_ms - std::exchange(told.waited_before_ms, waited_ms);
    outcome_.data_wait_ms += waited;
    ordered_json line{{"event", "step"},
                      {"epoch", epoch},
                      {"step", position().step},
                      {"of", steps_},
                      {"samples", position().samples},
                      {"seconds", position().seconds},
                      {"loss", outcome_.loss},
                      {"batch", told.steps.back().second},
                      {"learning_rate", told.rate},
                      {"data_wait_ms", waited}};
    if (workload().optimizer.clip_norm > 0) line["gradient_norm"] = gradient_norm;
    tell_(line);
    const bool finite = std::isfinite(outcome_.loss) && norms_are_finite(told);
    told.steps.clear();
    if (finite) return;
    outcome_.stopped =
        fmt::format("{} at step {} (epoch {}){}; a smaller --learning-rate may help",
                    std::isfinite(outcome_.loss) ? "the norm of the gradients is not finite"
                                                 : fmt::format("the loss is {}", outcome_.loss),
                    position().step, epoch, first_not_finite());
  }

  static bool norms_are_finite(const Told& told) {
    return std::ranges::all_of(
        told.steps, [](const auto& entry) { return std::isfinite(entry.first->gradient_norm()); });
  }

  /// In words: whose gradients of the last step are not finite, and whose values.
  std::string first_not_finite() {
    const strategies::StateDictionary state = context_.strategy.state();
    std::size_t count = 0;
    std::string first;
    for (const auto& [name, tensor] : state) {
      if (name.starts_with("optimizer.") || tensor.isfinite().all().item<bool>()) continue;
      if (count++ == 0) first = name;
    }
    if (count == 0) return "";
    return fmt::format("; not finite: {}{}", first,
                       count == 1 ? "" : fmt::format(" and {} more", count - 1));
  }

  /// Every sample once: sums over batches, divided by what there is.
  void evaluate(const char* split, const datasets::DatasetPointer& data, std::int64_t epoch) {
    if (!data) return;
    std::vector<std::int64_t> order(static_cast<std::size_t>(data->size()));
    for (std::size_t index = 0; index < order.size(); ++index) {
      order[index] = static_cast<std::int64_t>(index);
    }
    const EpochShape whole{.samples = data->size(),
                           .batch = shape_.batch,
                           .replicas = context_.replicas,
                           .tail = Tail::exact};
    BatchStream batches = stream(*data, batches_of_an_epoch(std::move(order), whole), epoch, false);
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
    const double loss = sum / static_cast<double>(data->size());
    ordered_json line{{"event", "evaluation"},   {"split", split},          {"epoch", epoch},
                      {"step", position().step}, {"samples", data->size()}, {"loss", loss}};
    const bool classes = workload().targets == models::Targets::classes;
    if (classes) {
      line["correct"] = correct;
      line["positions"] = positions;
    }
    line["seconds"] = seconds(Clock::now() - start);
    tell_(line);
    if (std::string(split) != "validation") return;
    outcome_.validation_loss = loss;
    if (classes) {
      outcome_.accuracy = static_cast<double>(correct) / static_cast<double>(positions);
    }
  }

  const TrainerContext& context_;
  const datasets::Datasets& data_;
  const TrainingOptions& options_;
  const Tell& tell_;
  EpochShape shape_;
  std::int64_t steps_;  // of the whole training
  LearningRateSchedule rates_;
  Outcome outcome_;
};

}  // namespace

Outcome train(const TrainerContext& context, const datasets::Datasets& data,
              const TrainingOptions& options, const Tell& tell) {
  return Trainer(context, data, options, tell).run();
}

}  // namespace stratagem::training
