// train: a row's strategy over the epochs of a data set.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/config/training_data.h"
#include "bench/worker/fault_injection.h"
#include "bench/worker/session.h"
#include "bench/worker/tasks.h"
#include "bench/worker/timed_run.h"
#include "models/token_data.h"
#include "strategies/distributed/gather_state.h"
#include "strategies/distributed/state_reader.h"
#include "strategies/runtime/device.h"
#include "training/checkpoint/folder.h"
#include "training/log.h"
#include "training/loop/checkpoint_file.h"
#include "training/loop/trainer.h"

namespace stratagem::bench {
namespace {

using training::Checkpoint;
using training::Position;

/// Returns nothing for a number that is not finite, which JSON lacks.
std::optional<double> if_finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Reports to the controller what this rank does while no device works. Without it, the controller
/// would consider the rank hung after --timeout.
class Presence {
 public:
  Presence(const TaskContext& context, std::string what)
      : context_(context), what_(std::move(what)), start_(Clock::now()) {}

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void show() const {
    if (context_.activity == nullptr) return;
    context_.activity->write(0, fmt::format("{:.0f} s {}", std::floor(seconds()), what_));
  }

 private:
  using Clock = std::chrono::steady_clock;

  const TaskContext& context_;
  std::string what_;
  Clock::time_point start_;
};

/// Shows the presence while a file is read or written, and ends this process if that takes longer
/// than the limit: nothing else ends a call to the kernel that does not return.
class FileLimit {
 public:
  FileLimit(const TaskContext& context, Presence presence, double limit_s, std::string failure)
      : thread_([=, &context, this](const std::stop_token& stop) {
          constexpr std::chrono::milliseconds interval{100};
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) {
            presence.show();
            if (presence.seconds() < limit_s || !context.on_overrun) continue;
            context.on_overrun(std::make_exception_ptr(runtime::DeviceTimeout(failure)));
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;  // last: it uses the others
};

/// Writes checkpoints on rank 0. The other ranks send it their parts of the state.
class Keeper {
 public:
  Keeper(const TrainJob& job, const Session& session, const TaskContext& context,
         training::LogWriter& log)
      : job_(job), session_(session), context_(context), log_(log) {}

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
    const std::string what = fmt::format("the checkpoint of step {}", position.step);
    const bool writes = session_.rank() == 0;
    constexpr double grace_s = 2;  // rank 0 reports its own delay first
    const double limit_s = job_.training.checkpoint_timeout;
    const FileLimit limit(
        context_, Presence(context_, (writes ? "writing " : "waiting for ") + what),
        limit_s + (writes ? 0 : grace_s),
        fmt::format("rank 0: {} is not written within {:g} s (--checkpoint-timeout)", what,
                    limit_s));
    if (!writes) return distributed::send_state(own, *ranks, device);
    distributed::StateReader state(std::move(own), ranks, device);
    keep(path, {.position = position, .scheduled_rate = scheduled_rate, .work = job_.work}, state);
  }

  void keep(const std::filesystem::path& path, const training::CheckpointNotes& notes,
            distributed::StateReader& state) {
    const std::int64_t step = notes.position.step;
    try {
      log_.sync();  // the log on the disk has every step that the checkpoint has
      write_checkpoint(path, notes, state, *session_.workload);
      failures_ = 0;
      log_.write(checkpoint::log_line({step, path}));
    } catch (const std::system_error& error) {
      log_.write({{"event", "checkpoint"}, {"step", step}, {"error", error.what()}});
      if (++failures_ < most_failures) return;
      throw std::runtime_error(fmt::format("{} checkpoints in a row could not be written: {}",
                                           most_failures, error.what()));
    }
    thin_out(step, path);
  }

  void thin_out(std::int64_t step, const std::filesystem::path& path) {
    try {
      checkpoint::Folder::thin_out(job_.training.checkpoint_dir,
                                   static_cast<std::size_t>(job_.training.keep));
    } catch (const std::system_error& error) {
      log_.write({{"event", "checkpoint"},
                  {"step", step},
                  {"path", path.string()},
                  {"error", fmt::format("cannot remove an older one: {}", error.what())}});
    }
  }

  const TrainJob& job_;
  const Session& session_;
  const TaskContext& context_;
  training::LogWriter& log_;
  int failures_ = 0;
};

/// Returns the requests to rank 0's host. Removes the file of a request for a checkpoint.
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
    const FileLimit limit(context, Presence(context, "reading the checkpoint"),
                          options.checkpoint_timeout,
                          fmt::format("{}: not read within {:g} s (--checkpoint-timeout)",
                                      options.resume, options.checkpoint_timeout));
    const Checkpoint checkpoint = training::read_checkpoint(options.resume, *session->workload);
    require_same_work(options.resume, checkpoint.work, nlohmann::ordered_json::parse(job.work));
    session->strategy->load(checkpoint.state);
    trainer.start = checkpoint.position;
    if (session->rank() == 0 && !options.checkpoint_dir.empty() && !options.evaluate_only) {
      set_aside = checkpoint::Folder::set_aside(options.checkpoint_dir,
                                                {checkpoint.position.step, options.resume});
    }
  } else if (!options.initial_state.empty()) {
    session->strategy->load(training::read_model(options.initial_state, *session->workload));
  }
  Keeper keeper(job, *session, context, log);
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
          .interrupted = outcome.interrupted,
          .unwritten_log = log.unwritten()};
}

}  // namespace stratagem::bench
