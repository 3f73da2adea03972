// Runs the rows of `stratagem train` one after the other: each is checked, verified, launched and
// reported.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/config/training_command.h"
#include "bench/launch/exit_codes.h"
#include "bench/machine/signals.h"
#include "bench/measure/environment.h"
#include "bench/measure/preparation.h"
#include "models/datasets/dataset.h"
#include "tools/stratagem/subcommand.h"
#include "tools/stratagem_torch/train_view.h"
#include "training/checkpoint/folder.h"
#include "training/log.h"

namespace stratagem::tools {

/// A folder that is removed with its object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

class TrainRun {
 public:
  /// The references outlive it. `saves`: a signal that asks for a checkpoint.
  TrainRun(const bench::TrainOptions& options, const Arguments& arguments,
           const datasets::Datasets& data, const bench::RequestSignal& saves);

  /// Continues from this checkpoint.
  void resume(checkpoint::Entry from) { resumed_ = std::move(from); }

  /// Returns the exit code.
  int run(const std::vector<bench::Config>& configs, const bench::Interrupt& interrupt,
          bench::Cluster* cluster);

 private:
  std::vector<bench::Config> with_last_batches(std::vector<bench::Config> rows) const;
  void train(const bench::PreparedRow& row, const bench::MeasureEnvironment& environment);
  nlohmann::ordered_json start_line(const bench::PreparedRow& row) const;
  void open(const bench::PreparedRow& row, const nlohmann::ordered_json& start);
  void conclude(const bench::PreparedRow& row, const nlohmann::ordered_json& start,
                nlohmann::ordered_json events, const bench::TrainResult& result);
  void tell_how_to_resume(std::int64_t step);
  std::vector<bench::PreparedRow> check(const std::vector<bench::Config>& configs,
                                        const bench::MeasureEnvironment& environment);
  void require_own_log(const std::vector<bench::PreparedRow>& rows) const;
  void begin_log();
  void keep_log_aside();
  std::string work_of(const bench::Config& row) const;
  void report_log();
  void fail(const std::string& row, const std::string& why, int code);

  const bench::TrainOptions& options_;
  const datasets::Datasets& data_;
  std::optional<checkpoint::Entry> resumed_;
  TemporaryFolder folder_;
  std::string log_;
  std::optional<training::LogWriter> writer_;  // open for the whole run
  std::string work_;                           // for a run that writes or reads a checkpoint
  TrainView view_;
  nlohmann::ordered_json document_;
  int code_ = bench::exit_codes::done;
};

}  // namespace stratagem::tools
