#include "tools/stratagem_torch/train_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bench/config/catalogue.h"
#include "bench/config/core_demand.h"
#include "bench/config/options.h"
#include "bench/config/training_data.h"
#include "bench/measure/job_launch.h"
#include "bench/worker/session.h"
#include "bench/worker/worker_main.h"
#include "models/workload.h"
#include "reports/atomic_file.h"
#include "strategies/runtime/print_line.h"
#include "tools/stratagem_torch/shapes_text.h"
#include "tools/stratagem_torch/train_text.h"
#include "training/loop/checkpoint_file.h"

namespace stratagem::tools {
namespace {

using nlohmann::ordered_json;

long size_of(const std::string& file) {
  return static_cast<long>(std::filesystem::file_size(file));
}

/// Returns the classes that an untrained model guesses among; 0: its loss is another.
std::int64_t guessed_classes(const models::Workload& workload) {
  return workload.options().loss == models::Loss::cross_entropy ? workload.classes() : 0;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (bench::temporary_folder() / "stratagem-train-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), name);
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TrainRun::TrainRun(const bench::TrainOptions& options, const Arguments& arguments,
                   const datasets::Datasets& data, const bench::RequestSignal& saves)
    : options_(options),
      data_(data),
      log_(options.training.log.empty() ? folder_.file("log") : options.training.log),
      view_(options.row.files.quiet, options.training.evaluate_only) {
  view_.end_by(folder_.file("stop"));
  const bool keeps = !options.training.checkpoint_dir.empty();
  view_.save_by(keeps ? folder_.file("save") : std::string(), saves);
  document_ = {{"schema", "stratagem-train/1"},
               {"command", fmt::format("stratagem train{}{}", arguments.empty() ? "" : " ",
                                       fmt::join(arguments, " "))},
               {"trainings", ordered_json::array()}};
}

int TrainRun::run(const std::vector<bench::Config>& configs, const bench::Interrupt& interrupt,
                  bench::Cluster* cluster) {
  const auto environment = bench::make_environment(bench::registered_catalogue(), interrupt, view_,
                                                   /*verbose=*/false, bench::worker_main, cluster);
  std::vector<bench::PreparedRow> rows = check(configs, environment);
  require_own_log(rows);
  const bench::Config& first = rows.front().config;
  const auto locks = bench::hold_cores(bench::cores_of(configs, environment.cores), first.timeout,
                                       environment, view_, first.oversubscribe);
  if (resumed_ || !options_.training.checkpoint_dir.empty()) work_ = work_of(first);
  if (resumed_) {
    bench::require_same_work(resumed_->path, training::read_work(resumed_->path),
                             ordered_json::parse(work_));
  }
  bench::verify_rows(rows, environment, view_);
  begin_log();
  for (const bench::PreparedRow& row : rows) {
    if (code_ != bench::exit_codes::interrupted) train(row, environment);
  }
  report_log();
  if (!options_.row.files.out.empty()) {
    bench::write_what_was_measured(
        [&] { reports::write_file_atomically(options_.row.files.out, document_.dump(1) + "\n"); },
        options_.training.log.empty() ? "" : "the log has its lines");
  }
  return code_;
}

/// Returns the rows, then copies with the shorter last batch of those that have one.
std::vector<bench::Config> TrainRun::with_last_batches(std::vector<bench::Config> rows) const {
  const std::size_t count = rows.size();
  for (std::size_t index = 0; index < count; ++index) {
    bench::Config last = rows[index];
    last.global_batch_size = last_batch(shape_of(last, options_.training, data_));
    if (last.global_batch_size != rows[index].global_batch_size) rows.push_back(last);
  }
  return rows;
}

/// Returns the rows, which can train batches and last batches.
std::vector<bench::PreparedRow> TrainRun::check(const std::vector<bench::Config>& configs,
                                                const bench::MeasureEnvironment& environment) {
  const std::vector<bench::Config> all = with_last_batches(configs);
  try {
    std::vector<bench::PreparedRow> rows = bench::check_rows(all, environment, view_);
    rows.resize(configs.size());
    return rows;
  } catch (const std::invalid_argument& error) {
    if (all.size() == configs.size()) throw;
    bench::check_rows(configs, environment, view_);  // throws the error of whole batches
    const std::string text = error.what();
    const std::size_t reason = text.find(": replica");
    throw std::invalid_argument(fmt::format(
        "--tail {}: the last batch of an epoch has {} of {} samples{}; --tail drop leaves it out",
        options_.training.tail, all.back().global_batch_size, configs.front().global_batch_size,
        reason == std::string::npos ? ": " + text : text.substr(reason)));
  }
}

void TrainRun::train(const bench::PreparedRow& row, const bench::MeasureEnvironment& environment) {
  if (row.failure) {
    fail(row.name, row.failure->error->message, bench::exit_codes::mismatch);
    return;
  }
  const ordered_json start = start_line(row);
  open(row, start);
  auto job = bench::job_about<bench::TrainJob>(row.config, row.placement.ranks);
  job.training = options_.training;
  job.training.log = log_;
  job.training.stop_file = folder_.file("stop");
  job.training.save_file = folder_.file("save");
  if (resumed_) job.training.resume = resumed_->path;
  job.work = work_;
  const models::Workload workload(bench::workload_options(row.config));
  view_.follow(training::LogReader(log_, size_of(log_)), guessed_classes(workload));
  const auto launched = bench::launch_job(environment, job);
  const std::vector<ordered_json> unwritten =
      training::lines_of(launched.result.unwritten_log, "train result: unwritten_log");
  ordered_json events = view_.finish(unwritten);
  for (const ordered_json& line : unwritten) writer_->write(line);
  bench::require_result(row.name, launched.status, launched.error);
  conclude(row, start, std::move(events), launched.result);
}

ordered_json TrainRun::start_line(const bench::PreparedRow& row) const {
  const models::Workload workload(bench::workload_options(row.config));
  return {{"event", "start"},
          {"name", row.name},
          {"config", bench::to_json(row.config)},
          {"training_samples", data_.training->size()},
          {"steps_of_an_epoch",
           training::steps_of_an_epoch(shape_of(row.config, options_.training, data_))},
          {"parameters", workload.parameter_count()}};
}

/// Writes the first lines.
void TrainRun::open(const bench::PreparedRow& row, const ordered_json& start) {
  view_.print(fmt::format("{}: {}, {} steps an epoch, {} parameters", row.name, sizes_text(data_),
                          start.at("steps_of_an_epoch").dump(), start.at("parameters").dump()));
  if (options_.show_shapes) {
    for (const std::string& line : shapes_text(row.config, options_.training, data_)) {
      view_.print(line);
    }
  }
  writer_->write(start);
  if (resumed_) writer_->write({{"event", "resume"}, {"step", resumed_->step}});
  writer_->sync();
  const bool is_first = document_.at("trainings").empty();
  if (is_first) writer_->require_written();
  if (!resumed_) return;
  view_.print(fmt::format("continues from {}", resumed_->path.string()));
}

void TrainRun::conclude(const bench::PreparedRow& row, const ordered_json& start,
                        ordered_json events, const bench::TrainResult& result) {
  if (!options_.training.evaluate_only) {
    view_.print(steps_text(result));
    view_.print(stalls_text(result));
  }
  if (!result.set_aside.empty()) {
    view_.print(fmt::format("{}: checkpoints that do not lead from step {} are now in {}",
                            options_.training.checkpoint_dir, resumed_->step, result.set_aside));
  }
  if (result.stopped_early) view_.print(early_stop_text(options_.training, result));
  ordered_json end{{"event", "end"},
                   {"steps", result.steps},
                   {"seconds", result.seconds},
                   {"data_wait_ms", result.data_wait_ms},
                   {"stalled_steps", result.stalled_steps},
                   {"loader_ms", result.loader_ms},
                   {"loader_processor_ms", result.loader_processor_ms}};
  if (bench::workload_options(row.config).dynamic_loss_scale) {
    end["skipped_updates"] = result.skipped_updates;
  }
  if (result.best) {
    end["best"] = {{"step", result.best_step}, {options_.training.monitor, *result.best}};
  }
  if (result.stopped_early) end["stopped_early"] = true;
  if (!result.stopped.empty()) end["stopped"] = result.stopped;
  if (!result.interrupted) writer_->write(end);
  if (resumed_) {  // the whole log, not only this part
    events = training::LogReader(log_).next();
    for (ordered_json& line : training::lines_of(writer_->unwritten(), log_)) {
      events.push_back(std::move(line));
    }
  }
  document_["trainings"].push_back(
      {{"name", row.name}, {"start", start}, {"events", std::move(events)}, {"end", end}});
  const std::string why =
      result.stopped.empty() ? shortfall(options_.requirement, result) : result.stopped;
  if (result.interrupted) return tell_how_to_resume(result.steps);
  if (!why.empty()) fail(row.name, why, bench::exit_codes::mismatch);
}

void TrainRun::tell_how_to_resume(std::int64_t step) {
  const bool kept = !options_.training.checkpoint_dir.empty();
  runtime::print_line(stderr, fmt::format("stratagem: interrupted after step {}; {}", step,
                                          kept ? "the same command with --resume auto continues"
                                               : "to continue, give --checkpoint-dir FOLDER"));
  code_ = bench::exit_codes::interrupted;
}

/// Throws if --log names a file that would be lost: any but an empty one or the log of one of these
/// trainings or, if this continues from a checkpoint, of any training.
void TrainRun::require_own_log(const std::vector<bench::PreparedRow>& rows) const {
  const std::string& path = options_.training.log;
  std::error_code none;
  if (path.empty() || !std::filesystem::is_regular_file(path, none) ||
      std::filesystem::file_size(path, none) == 0) {
    return;
  }
  const ordered_json first = training::first_line(path);
  const bool is_log = first.is_object() && first.contains("event") && first["event"] == "start";
  const bool is_own = std::ranges::any_of(rows, [&](const bench::PreparedRow& row) {
    return is_log && first.contains("config") &&
           first["config"] == ordered_json(bench::to_json(row.config));
  });
  if (is_own || (is_log && resumed_)) return;
  throw std::invalid_argument(
      fmt::format("--log {}: is {}; name another file, or remove it", path,
                  is_log ? "the log of another training" : "not the log of a training"));
}

/// Begins with the log up to the checkpoint, or with an empty one.
void TrainRun::begin_log() {
  std::string text;
  if (resumed_ && std::filesystem::exists(log_)) {
    const training::LogUntil found = training::lines_until(log_, resumed_->step);
    if (found.last_step < resumed_->step) {
      view_.print(fmt::format("{} ends at step {}: its lines up to step {} are missing", log_,
                              found.last_step, resumed_->step));
    }
    text = found.text + checkpoint::log_line(*resumed_).dump() + "\n";
  } else if (options_.resume == "auto") {
    keep_log_aside();
  }
  reports::write_file_atomically(log_, text);
  writer_.emplace(log_);
}

void TrainRun::keep_log_aside() {
  std::error_code absent;
  const auto size = std::filesystem::file_size(log_, absent);
  if (absent || size == 0) return;
  std::string aside;
  for (int number = 1; aside.empty() || std::filesystem::exists(aside); ++number) {
    aside = fmt::format("{}.{}", log_, number);
  }
  std::filesystem::rename(log_, aside);
  view_.print(fmt::format("no checkpoint to continue from: the earlier log is now {}", aside));
}

std::string TrainRun::work_of(const bench::Config& row) const {
  const auto shape = shape_of(row, options_.training, data_);
  return bench::work_of(row, options_.training, *data_.training,
                        training::steps_of(options_.training, shape))
      .dump();
}

/// Prints one line if the log is not whole.
void TrainRun::report_log() {
  if (!writer_) return;
  writer_->sync();
  try {
    writer_->require_written();
  } catch (const std::system_error& error) {
    const auto lines = training::lines_of(writer_->unwritten(), log_).size();
    if (options_.training.log.empty()) return;  // a temporary file, which nobody reads any more
    fail("stratagem", fmt::format("{}; its last {} lines are missing", error.what(), lines),
         bench::exit_codes::lost);
  }
}

void TrainRun::fail(const std::string& row, const std::string& why, int code) {
  runtime::print_line(stderr, fmt::format("{}: {}", row, why));
  code_ = code;
}

}  // namespace stratagem::tools
