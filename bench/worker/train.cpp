// train: a row's strategy over the epochs of a data set.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>

#include "bench/config/training_data.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/session.h"
#include "bench/worker/tasks.h"
#include "bench/worker/timed_run.h"
#include "models/token_data.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/distributed/state_reader.h"
#include "training/checkpoint/folder.h"
#include "training/log.h"
#include "training/loop/checkpoint_file.h"
#include "training/loop/trainer.h"

namespace stratagem::bench {
namespace {

using training::Checkpoint;
using training::Position;

/// What must be the same when a training goes on; strategy and devices may differ.
nlohmann::ordered_json work_of(const TrainJob& job) {
  const Config& config = job.config;
  const training::TrainingOptions& options = job.training;
  return {{"model", config.model},
          {"global_batch_size", config.global_batch_size},
          {"image_size", config.image_size},
          {"sequence_length", config.sequence_length},
          {"features", config.features},
          {"outputs", config.outputs},
          {"targets", config.targets},
          {"loss", config.loss},
          {"dtype", config.dtype},
          {"mixed_precision", config.mixed_precision},
          {"optimizer", config.optimizer},
          {"momentum", config.momentum},
          {"weight_decay", config.weight_decay},
          {"clip_gradients", config.clip_gradients},
          {"seed", config.seed},
          {"data", options.data},
          {"samples", options.samples},
          {"tail", options.tail},
          {"shuffle", options.shuffle},
          {"augment", options.augment}};
}

/// JSON has no numbers that are not finite.
std::optional<double> if_finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Throws std::invalid_argument with the first option that was another one.
void require_same_work(const std::string& path, const std::string& then, const TrainJob& job) {
  const auto was = nlohmann::ordered_json::parse(then, nullptr, /*allow_exceptions=*/false);
  const nlohmann::ordered_json now = work_of(job);
  for (const auto& [name, value] : now.items()) {
    const auto before = was.is_object() ? was.find(name) : was.end();
    if (before != was.end() && *before == value) continue;
    // What older trainings do not name, they did not have.
    if (before == was.end() && name == "mixed_precision" && value == "none") continue;
    throw std::invalid_argument(
        fmt::format("{}: is of a training with {} {}, this one has {}", path, name,
                    before == was.end() ? "an unknown" : before->dump(), value.dump()));
  }
}

/// Writes checkpoints on rank 0, which the others send their parts of the state.
class Keeper {
 public:
  Keeper(const TrainJob& job, const Session& session, const training::Tell& tell)
      : job_(job), session_(session), tell_(tell) {}

  void operator()(const Position& position, std::optional<double> scheduled_rate) {
    const std::filesystem::path folder = job_.training.checkpoint_dir;
    save(checkpoint::Folder::path_of(folder, position.step), position, scheduled_rate);
  }

  void best(const Position& position, std::optional<double> scheduled_rate) {
    const std::filesystem::path folder = job_.training.checkpoint_dir;
    save(checkpoint::Folder::best_of(folder), position, scheduled_rate);
  }

 private:
  static constexpr int most_failures = 3;  // one after another

  void save(const std::filesystem::path& path, const Position& position,
            std::optional<double> scheduled_rate) {
    strategies::StatePieces own = session_.strategy->own_state(/*with_gradients=*/false);
    distributed::ProcessGroup* const ranks = session_.groups.view().all;
    const auto device = backends::torch_device(session_.group.devices.front()->description());
    if (session_.rank() != 0) return distributed::send_state(own, *ranks, device);
    distributed::StateReader state(std::move(own), ranks, device);
    keep(path,
         {.position = position, .scheduled_rate = scheduled_rate, .work = work_of(job_).dump()},
         state);
  }

  void keep(const std::filesystem::path& path, const training::CheckpointNotes& notes,
            distributed::StateReader& state) {
    const std::filesystem::path folder = job_.training.checkpoint_dir;
    const std::int64_t step = notes.position.step;
    try {
      write_checkpoint(path, notes, state, *session_.workload);
      checkpoint::Folder::thin_out(folder, static_cast<std::size_t>(job_.training.keep));
      failures_ = 0;
      tell_(checkpoint::log_line({step, path}));
    } catch (const std::system_error& error) {
      tell_({{"event", "checkpoint"}, {"step", step}, {"error", error.what()}});
      if (++failures_ == most_failures) throw std::runtime_error(error.what());
    }
  }

  const TrainJob& job_;
  const Session& session_;
  const training::Tell& tell_;
  int failures_ = 0;
};

/// What rank 0's host is asked for. A request for a checkpoint is taken: its file goes.
training::Requests requests_of(const training::TrainingOptions& options) {
  training::Requests asked;
  std::error_code none;
  if (!options.stop_file.empty()) asked.stop = std::filesystem::exists(options.stop_file, none);
  if (!options.save_file.empty()) asked.save = std::filesystem::remove(options.save_file, none);
  return asked;
}

double milliseconds_a_batch(std::chrono::nanoseconds time, const training::LoaderWork& work) {
  if (work.batches == 0) return 0;
  return milliseconds(time) / static_cast<double>(work.batches);
}

}  // namespace

TrainResult train(const TrainJob& job, const TaskContext& context) {
  const Config& config = job.config;
  const training::TrainingOptions& options = job.training;
  const datasets::Datasets data = training_data(config, options, models::training_text());
  const int rank = context.ranks ? context.ranks->info().rank : 0;
  std::optional<Session> session;
  const AllRanks all_ranks = [&session] { return session->groups.view().all; };
  session.emplace(config, workload_options(config), context,
                  injected_fault(FaultyTask::measure, config.strategy, rank, all_ranks));
  training::LogWriter log(session->rank() == 0 ? options.log : std::string());
  const training::Tell tell = [&log](const nlohmann::ordered_json& line) { log.write(line); };
  const bool one_process = strategies::find_strategy(config.strategy).one_process;
  training::TrainerContext trainer{.workload = *session->workload,
                                   .strategy = *session->strategy,
                                   .devices = session->group.devices,
                                   .replicas = one_process ? 1 : session->placement.replicas(),
                                   .pinned = config.device == "cuda",
                                   .timeout = to_milliseconds(config.timeout)};
  std::filesystem::path set_aside;
  if (!options.resume.empty()) {
    const Checkpoint checkpoint = training::read_checkpoint(options.resume, *session->workload);
    require_same_work(options.resume, checkpoint.work, job);
    session->strategy->load(checkpoint.state);
    trainer.start = checkpoint.position;
    if (session->rank() == 0 && !options.checkpoint_dir.empty()) {
      set_aside = checkpoint::Folder::set_aside(options.checkpoint_dir,
                                                {checkpoint.position.step, options.resume});
    }
  } else if (!options.initial_state.empty()) {
    session->strategy->load(training::read_model(options.initial_state, *session->workload));
  }
  Keeper keeper(job, *session, tell);
  if (!options.checkpoint_dir.empty()) trainer.save = std::ref(keeper);
  if (options.keep_best) {
    trainer.save_best = [&keeper](const Position& position, std::optional<double> scheduled_rate) {
      keeper.best(position, scheduled_rate);
    };
  }
  if (session->rank() == 0) trainer.requests = [&options] { return requests_of(options); };
  if (auto* const all = session->groups.view().all; all != nullptr) {
    const auto device = backends::torch_device(session->group.devices.front()->description());
    trainer.sum_over_ranks = [all, device](std::span<double> values) {
      distributed::sum_over_ranks(values, *all, device);
    };
  }
  const training::Outcome outcome = training::train(trainer, data, options, tell);
  return {.steps = outcome.position.step,
          .skipped_updates = outcome.position.skipped,
          .seconds = outcome.position.seconds,
          .data_wait_ms = outcome.data_wait_ms,
          .stalled_steps = outcome.stalled_steps,
          .loader_ms = milliseconds_a_batch(outcome.loader.elapsed, outcome.loader),
          .loader_processor_ms = milliseconds_a_batch(outcome.loader.processor, outcome.loader),
          .loader_threads = static_cast<std::int64_t>(outcome.loader.threads),
          .steps_before = trainer.start.step,
          .seconds_before = trainer.start.seconds,
          .loss = if_finite(outcome.loss),
          .validation_loss = if_finite(outcome.validation_loss),
          .accuracy = outcome.accuracy,
          .best = outcome.position.best.exists() ? if_finite(outcome.position.best.value)
                                                 : std::nullopt,
          .best_step = outcome.position.best.step,
          .set_aside = set_aside.string(),
          .stopped_early = outcome.stopped_early,
          .stopped = outcome.stopped,
          .interrupted = outcome.interrupted};
}

}  // namespace stratagem::bench
