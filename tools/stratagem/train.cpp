// stratagem train: epochs over a data set, by any strategy.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "bench/config/core_demand.h"
#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/registered_catalogue.h"
#include "bench/config/training_command.h"
#include "bench/config/training_data.h"
#include "bench/launch/exit_codes.h"
#include "bench/launch/launcher_session.h"
#include "bench/measure/environment.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/preparation.h"
#include "models/token_data.h"
#include "reports/atomic_file.h"
#include "strategies/distributed/c10d_store.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/shapes_text.h"
#include "tools/stratagem/train_view.h"
#include "training/checkpoint/folder.h"

namespace stratagem::tools {
namespace {

using nlohmann::ordered_json;

/// A folder that goes with its object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stratagem-train-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

long size_of(const std::string& file) {
  return static_cast<long>(std::filesystem::file_size(file));
}

std::string sizes_text(const datasets::Datasets& data) {
  std::string text = fmt::format("{} training", data.training->size());
  if (data.validation) text += fmt::format(", {} validation", data.validation->size());
  if (data.test) text += fmt::format(", {} test", data.test->size());
  return text + " samples";
}

/// One line why the training has not reached what was asked for; empty: it has.
std::string shortfall(const bench::Requirement& wanted, const bench::TrainResult& found) {
  using Kind = bench::Requirement::Kind;
  if (wanted.kind == Kind::loss) {
    const std::optional<double> loss = found.validation_loss ? found.validation_loss : found.loss;
    if (loss && *loss <= wanted.value) return "";
    return fmt::format("--require loss:{:g}: the training reached {}", wanted.value,
                       loss ? fmt::format("{:g}", *loss) : "no number");
  }
  if (wanted.kind == Kind::accuracy) {
    if (!found.accuracy) {
      return "--require accuracy: needs classes and a --validation set to count in";
    }
    if (*found.accuracy >= wanted.value) return "";
    return fmt::format("--require accuracy:{:g}: the training reached {:g}", wanted.value,
                       *found.accuracy);
  }
  return "";
}

std::set<int> own_cores(const bench::Config& row, const bench::MeasureEnvironment& environment) {
  const std::vector<int> cores = bench::cores_of(row, environment.cores);
  return {cores.begin(), cores.end()};
}

class Training {
 public:
  Training(const bench::TrainOptions& options, const Arguments& arguments,
           const datasets::Datasets& data)
      : options_(options),
        data_(data),
        log_(options.training.log.empty() ? folder_.file("log") : options.training.log),
        view_(options.row.files.quiet) {
    view_.end_by(folder_.file("stop"));
    document_ = {{"schema", "stratagem-train/1"},
                 {"command", fmt::format("stratagem train{}{}", arguments.empty() ? "" : " ",
                                         fmt::join(arguments, " "))},
                 {"trainings", ordered_json::array()}};
  }

  /// Goes on from there.
  void resume(checkpoint::Entry from) { resumed_ = std::move(from); }

  int run(const std::vector<bench::Config>& configs, const bench::Interrupt& interrupt,
          bench::Cluster* cluster) {
    const auto environment = bench::make_environment(bench::registered_catalogue(), interrupt,
                                                     view_, /*verbose=*/false, cluster);
    std::vector<bench::PreparedRow> rows =
        bench::check_rows(with_last_batches(configs), environment, view_);
    rows.resize(configs.size());
    std::set<int> cores;
    for (const bench::PreparedRow& row : rows) cores.merge(own_cores(row.config, environment));
    const bench::Config& first = rows.front().config;
    const auto locks = bench::hold_cores({cores.begin(), cores.end()}, first.timeout, environment,
                                         view_, first.oversubscribe);
    bench::verify_rows(rows, environment, view_);
    begin_log();
    for (const bench::PreparedRow& row : rows) {
      if (code_ != bench::exit_codes::interrupted) train(row, environment);
    }
    if (!options_.row.files.out.empty()) {
      reports::write_file_atomically(options_.row.files.out, document_.dump(1) + "\n");
    }
    return code_;
  }

 private:
  /// The rows, and behind them those whose epochs end with a shorter batch with that.
  std::vector<bench::Config> with_last_batches(std::vector<bench::Config> rows) const {
    const std::size_t count = rows.size();
    for (std::size_t index = 0; index < count; ++index) {
      bench::Config last = rows[index];
      last.global_batch_size = last_batch(shape_of(last, options_.training, data_));
      if (last.global_batch_size != rows[index].global_batch_size) rows.push_back(last);
    }
    return rows;
  }

  void train(const bench::PreparedRow& row, const bench::MeasureEnvironment& environment) {
    if (row.failure) {
      fail(row.name, row.failure->error->message, bench::exit_codes::mismatch);
      return;
    }
    view_.print(fmt::format("{}: {}", row.name, sizes_text(data_)));
    if (options_.show_shapes) {
      for (const std::string& line : shapes_text(row.config, options_.training, data_)) {
        view_.print(line);
      }
    }
    const ordered_json start{{"event", "start"},
                             {"name", row.name},
                             {"config", bench::to_json(row.config)},
                             {"training_samples", data_.training->size()}};
    training::LogWriter(log_).write(start);
    if (resumed_) {
      training::LogWriter(log_).write({{"event", "resume"}, {"step", resumed_->step}});
      view_.print(fmt::format("goes on from {}", resumed_->path.string()));
    }
    auto job = bench::job_about<bench::TrainJob>(row.config, row.placement.ranks);
    job.training = options_.training;
    job.training.log = log_;
    job.training.stop_file = folder_.file("stop");
    if (resumed_) job.training.resume = resumed_->path;
    view_.follow(training::LogReader(log_, size_of(log_)));
    const auto launched = bench::launch_job(environment, job);
    ordered_json events = view_.finish();
    bench::require_result(row.name, launched.status, launched.error);
    conclude(row, start, std::move(events), launched.result);
  }

  void conclude(const bench::PreparedRow& row, const ordered_json& start, ordered_json events,
                const bench::TrainResult& result) {
    const double waited = result.seconds > 0 ? result.data_wait_ms / result.seconds / 1e3 : 0;
    view_.print(fmt::format(
        "{} steps in {:.3g} s, {:.3g} ms a step, {:.1f}% of it waiting for data", result.steps,
        result.seconds, 1e3 * result.seconds / static_cast<double>(result.steps), 100 * waited));
    ordered_json end{{"event", "end"},
                     {"steps", result.steps},
                     {"seconds", result.seconds},
                     {"data_wait_ms", result.data_wait_ms}};
    if (!result.stopped.empty()) end["stopped"] = result.stopped;
    if (!result.interrupted) training::LogWriter(log_).write(end);
    if (resumed_) events = training::LogReader(log_).next();  // the whole, not this part of it
    document_["trainings"].push_back(
        {{"name", row.name}, {"start", start}, {"events", std::move(events)}, {"end", end}});
    const std::string why =
        result.stopped.empty() ? shortfall(options_.requirement, result) : result.stopped;
    if (result.interrupted) return tell_how_to_resume(result.steps);
    if (!why.empty()) fail(row.name, why, bench::exit_codes::mismatch);
  }

  void tell_how_to_resume(std::int64_t step) {
    const bool kept = !options_.training.checkpoint_dir.empty();
    fmt::print(stderr, "stratagem: interrupted after step {}; {}\n", step,
               kept ? "the same command with --resume auto goes on"
                    : "with --checkpoint-dir FOLDER it could go on");
    code_ = bench::exit_codes::interrupted;
  }

  /// The log so far, as far as the checkpoint knows of it; else an empty one.
  void begin_log() {
    std::string text;
    if (resumed_ && std::filesystem::exists(log_)) {
      text = training::lines_until(log_, resumed_->step);
    }
    if (!text.empty()) text += checkpoint::log_line(*resumed_).dump() + "\n";
    reports::write_file_atomically(log_, text);
  }

  void fail(const std::string& row, const std::string& why, int code) {
    fmt::print(stderr, "{}: {}\n", row, why);
    code_ = code;
  }

  const bench::TrainOptions& options_;
  const datasets::Datasets& data_;
  std::optional<checkpoint::Entry> resumed_;
  TemporaryFolder folder_;
  std::string log_;
  TrainView view_;
  ordered_json document_;
  int code_ = bench::exit_codes::done;
};

/// The checkpoint that the training goes on from, if it does.
std::optional<checkpoint::Entry> start_of(const bench::TrainOptions& options,
                                          const checkpoint::Folder* folder) {
  const std::vector<checkpoint::Entry> kept =
      folder == nullptr ? std::vector<checkpoint::Entry>() : folder->entries();
  if (options.resume == "none") {
    if (kept.empty()) return std::nullopt;
    throw std::invalid_argument(fmt::format(
        "--checkpoint-dir {}: has checkpoints up to step {}; --resume auto goes on from there, or "
        "take another folder",
        options.training.checkpoint_dir, kept.back().step));
  }
  if (options.resume == "auto") {
    if (folder == nullptr) throw std::invalid_argument("--resume auto: needs --checkpoint-dir");
    return kept.empty() ? std::nullopt : std::optional(kept.back());
  }
  const auto step = checkpoint::Folder::step_of(options.resume);
  if (!step || !std::filesystem::exists(options.resume)) {
    throw std::invalid_argument(fmt::format(
        "--resume {}: expected auto, none or an existing step-NUMBER.pt", options.resume));
  }
  return checkpoint::Entry{*step, options.resume};
}

}  // namespace

int train(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Trains a model for epochs over a data set; several strategies one after the other,\n"
      "from the same start",
      "stratagem train");
  bench::TrainOptions options;
  const bench::TrainingPreset* const preset = bench::preset_among(arguments);
  if (preset != nullptr) {
    options.training = preset->training;
    options.show_shapes = preset->show_shapes;
  }
  bench::add_train_options(app, options, catalogue);
  bench::LauncherOptions launcher;
  bench::add_launcher_options(app, launcher);
  if (!parse(app, arguments)) return 0;

  bench::Selection selection =
      bench::select(options.row, preset == nullptr ? nullptr : &preset->row);
  const bench::LauncherSession session(launcher);
  session.fit(selection);
  std::vector<bench::Config> rows = bench::make_grid(selection, catalogue, bench::Baselines::none);
  session.fit(rows);
  const datasets::Datasets data =
      bench::training_data(rows.front(), options.training, models::training_text());
  bench::refuse_unused(app, options, data.training->format());
  for (bench::Config& row : rows) bench::fit_to_data(row, data.training->format());
  training::steps_of(options.training, shape_of(rows.front(), options.training, data));

  const bench::RendezvousSettings settings{
      .open = distributed::connect_store, .timeout = rows.front().timeout, .verbose = false};
  return session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
    if (!options.row.files.out.empty()) reports::check_writable(options.row.files.out);
    const bool keeps = !options.training.checkpoint_dir.empty();
    if (rows.size() > 1 && (keeps || options.resume != "none")) {
      throw std::invalid_argument(
          fmt::format("--checkpoint-dir, --resume: of one training; these are {}", rows.size()));
    }
    std::optional<checkpoint::Folder> folder;
    if (keeps) folder.emplace(options.training.checkpoint_dir);
    Training training(options, arguments, data);
    if (auto from = start_of(options, folder ? &*folder : nullptr)) {
      training.resume(*std::move(from));
    }
    return training.run(rows, interrupt, cluster);
  });
}

}  // namespace stratagem::tools
