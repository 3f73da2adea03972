// stratagem train: epochs over a data set, by any strategy.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/training_command.h"
#include "bench/config/training_data.h"
#include "bench/launch/launcher_session.h"
#include "bench/worker/session.h"
#include "models/token_data.h"
#include "reports/atomic_file.h"
#include "strategies/distributed/c10d_store.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem_torch/shapes_text.h"
#include "tools/stratagem_torch/train_run.h"
#include "training/checkpoint/folder.h"
#include "training/loop/batch_maker.h"
#include "training/loop/batch_stream.h"

namespace stratagem::tools {
namespace {

/// Returns the checkpoint that the training continues from, if any.
std::optional<checkpoint::Entry> start_of(const bench::TrainOptions& options,
                                          const checkpoint::Folder* folder) {
  const std::vector<checkpoint::Entry> kept =
      folder == nullptr ? std::vector<checkpoint::Entry>() : folder->entries();
  const std::string& initial = options.training.initial_state;
  if (!initial.empty() && !std::filesystem::exists(initial)) {
    throw std::invalid_argument(fmt::format("--initial-state {}: no such file", initial));
  }
  if (options.resume == "none") {
    if (kept.empty()) return std::nullopt;
    throw std::invalid_argument(fmt::format(
        "--checkpoint-dir {}: has checkpoints up to step {}; --resume auto continues from there, "
        "or give another folder",
        options.training.checkpoint_dir, kept.back().step));
  }
  if (options.resume == "auto") {
    if (folder == nullptr) throw std::invalid_argument("--resume auto: needs --checkpoint-dir");
    return kept.empty() ? std::nullopt : std::optional(kept.back());
  }
  if (std::filesystem::is_directory(options.resume)) {
    throw std::invalid_argument(
        fmt::format("--resume {}: is a folder; give --checkpoint-dir {} --resume auto",
                    options.resume, options.resume));
  }
  const auto step = checkpoint::Folder::step_of(options.resume);
  if (!step || !std::filesystem::exists(options.resume)) {
    throw std::invalid_argument(fmt::format(
        "--resume {}: {}; expected auto, none or the path of a checkpoint step-NUMBER.pt",
        options.resume,
        step || !std::filesystem::exists(options.resume) ? "no such file"
                                                         : "the name is not step-NUMBER.pt"));
  }
  if (!initial.empty()) {
    throw std::invalid_argument(
        "--resume and --initial-state exclude each other; give one of them");
  }
  return checkpoint::Entry{*step, options.resume};
}

/// Returns the file of the model for --evaluate-only.
std::string model_to_evaluate(const bench::TrainOptions& options) {
  const std::string& initial = options.training.initial_state;
  const bool resumes = options.resume != "none";
  if (resumes == !initial.empty()) {
    throw std::invalid_argument("--evaluate-only: needs either --resume or --initial-state");
  }
  std::string path = resumes ? options.resume : initial;
  if (options.resume == "auto") {
    const std::string& folder = options.training.checkpoint_dir;
    if (folder.empty()) throw std::invalid_argument("--resume auto: needs --checkpoint-dir");
    std::vector<checkpoint::Entry> kept;
    if (std::filesystem::is_directory(folder)) kept = checkpoint::Folder::entries_in(folder);
    if (kept.empty()) {
      throw std::invalid_argument(
          fmt::format("--resume auto: {} has no checkpoint to evaluate", folder));
    }
    path = kept.back().path;
  }
  if (!std::filesystem::exists(path)) {
    throw std::invalid_argument(
        fmt::format("{} {}: no such file", resumes ? "--resume" : "--initial-state", path));
  }
  return path;
}

/// Returns the first row's data; gives each row the sizes of its own. Throws std::invalid_argument,
/// in one line, for data that a row's model does not take.
datasets::Datasets data_for(std::vector<bench::Config>& rows, const bench::Selection& selection,
                            const training::TrainingOptions& options) {
  datasets::Datasets first;
  for (bench::Config& row : rows) {
    if (!selection.options.contains("image_size")) row.image_size = 0;
    const datasets::Datasets data = bench::training_data(row, options, models::training_text());
    bench::fit_to_data(row, data.training->format());
    training::require_fit(models::Workload(bench::workload_options(row)), data.training->format());
    if (!first.training) first = data;
  }
  return first;
}

/// Refuses loader threads if batches are made between steps.
void refuse_unused_loader(const CLI::App& app, const std::vector<bench::Config>& rows,
                          const datasets::SampleFormat& format) {
  const bool none = std::ranges::all_of(rows, [&](const bench::Config& row) {
    return training::is_made_at_once(format, row.global_batch_size);
  });
  for (const char* flag : {"--loader-threads", "--prefetch"}) {
    if (!none || app.count(flag) == 0) continue;
    throw std::invalid_argument(fmt::format(
        "{}: has no effect, because batches of at most 8192 numbers are loaded between the steps",
        flag));
  }
}

}  // namespace

int train(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Trains a model on a data set. Several strategies train one after the other from the same "
      "initial state.",
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
  std::vector<bench::Config> rows = bench::make_grid(selection, catalogue, bench::no_baselines);
  session.fit(rows);
  const datasets::Datasets data = data_for(rows, selection, options.training);
  bench::refuse_unused(app, options, bench::dataset_of(rows.front(), options.training),
                       data.training->format());
  refuse_unused_loader(app, rows, data.training->format());
  if (options.training.evaluate_only) {
    options.training.initial_state = model_to_evaluate(options);
    options.training.checkpoint_dir.clear();  // it is read, so another run may write there
    options.resume = "none";
  }
  const std::int64_t steps =
      training::steps_of(options.training, shape_of(rows.front(), options.training, data));
  training::schedule_of(options.training, rows.front().learning_rate, steps);

  const bench::RequestSignal saves(SIGUSR1);
  const bench::RendezvousSettings settings{
      .open = distributed::connect_store, .timeout = rows.front().timeout, .verbose = false};
  return session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
    reports::check_outputs({options.row.files.out, options.training.log});
    const bool keeps = !options.training.checkpoint_dir.empty();
    if (rows.size() > 1 && (keeps || options.resume != "none")) {
      throw std::invalid_argument(
          fmt::format("{}: these options make {} trainings, but one is expected; give each option "
                      "one value",
                      keeps ? "--checkpoint-dir" : "--resume", rows.size()));
    }
    std::optional<checkpoint::Folder> folder;
    if (keeps) folder.emplace(options.training.checkpoint_dir);
    TrainRun training(options, arguments, data, saves);
    if (auto from = start_of(options, folder ? &*folder : nullptr)) {
      training.resume(*std::move(from));
    }
    return training.run(rows, interrupt, cluster);
  });
}

}  // namespace stratagem::tools
