// stratagem train: epochs over a data set, by any strategy.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
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

namespace stratagem::tools {
namespace {

using nlohmann::ordered_json;

/// Where the worker writes and the command reads: the user's log, or a file that goes with it.
class LogFile {
 public:
  explicit LogFile(const std::string& wanted) : path_(wanted), is_users_(!wanted.empty()) {
    if (is_users_) {
      reports::write_file_atomically(path_, "");
      return;
    }
    path_ = (std::filesystem::temp_directory_path() / "stratagem-train-XXXXXX").string();
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), path_);
    ::close(descriptor);
  }
  ~LogFile() {
    if (!is_users_) ::unlink(path_.c_str());
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  const std::string& path() const { return path_; }
  long size() const { return static_cast<long>(std::filesystem::file_size(path_)); }

 private:
  std::string path_;
  bool is_users_;
};

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
    const double loss = found.validation_loss.value_or(found.loss);
    if (loss <= wanted.value) return "";
    return fmt::format("--require loss:{:g}: the training reached {:g}", wanted.value, loss);
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
      : options_(options), data_(data), log_(options.training.log), view_(options.row.files.quiet) {
    document_ = {{"schema", "stratagem-train/1"},
                 {"command", fmt::format("stratagem train{}{}", arguments.empty() ? "" : " ",
                                         fmt::join(arguments, " "))},
                 {"trainings", ordered_json::array()}};
  }

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
    for (const bench::PreparedRow& row : rows) train(row, environment);
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
    training::LogWriter(log_.path()).write(start);
    auto job = bench::job_about<bench::TrainJob>(row.config, row.placement.ranks);
    job.training = options_.training;
    job.training.log = log_.path();
    view_.follow(training::LogReader(log_.path(), log_.size()));
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
    training::LogWriter(log_.path()).write(end);
    document_["trainings"].push_back(
        {{"name", row.name}, {"start", start}, {"events", std::move(events)}, {"end", end}});
    const std::string why =
        result.stopped.empty() ? shortfall(options_.requirement, result) : result.stopped;
    if (!why.empty()) fail(row.name, why, bench::exit_codes::mismatch);
  }

  void fail(const std::string& row, const std::string& why, int code) {
    fmt::print(stderr, "{}: {}\n", row, why);
    code_ = code;
  }

  const bench::TrainOptions& options_;
  const datasets::Datasets& data_;
  LogFile log_;
  TrainView view_;
  ordered_json document_;
  int code_ = bench::exit_codes::done;
};

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
  for (bench::Config& row : rows) bench::fit_to_data(row, data.training->format());
  training::steps_of(options.training, shape_of(rows.front(), options.training, data));

  const bench::RendezvousSettings settings{
      .open = distributed::connect_store, .timeout = rows.front().timeout, .verbose = false};
  return session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
    if (!options.row.files.out.empty()) reports::check_writable(options.row.files.out);
    return Training(options, arguments, data).run(rows, interrupt, cluster);
  });
}

}  // namespace stratagem::tools
