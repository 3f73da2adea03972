// Prints the progress of a training: lines that stay, and one in place on a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/signals.h"
#include "bench/measure/progress.h"
#include "training/log.h"

namespace stratagem::tools {

class TrainView : public bench::Observer {
 public:
  /// `evaluates_only`: nothing is trained, so evaluations follow no step.
  TrainView(bool quiet, bool evaluates_only)
      : quiet_(quiet), evaluates_only_(evaluates_only), progress_(bench::Progress::style(quiet)) {}

  /// Makes ticks read this log. `classes`: those that an untrained model guesses among; 0: its
  /// first loss shows nothing.
  void follow(training::LogReader log, std::int64_t classes) {
    log_ = std::move(log);
    classes_ = classes;
  }
  /// Sets the file that makes the training end by itself after an interrupt.
  void end_by(std::string stop_file) { stop_file_ = std::move(stop_file); }
  /// Sets the file by which `signal`, which outlives this, makes the training write a checkpoint;
  /// empty: there is nowhere to write it.
  void save_by(std::string save_file, const bench::RequestSignal& signal) {
    save_file_ = std::move(save_file);
    saves_ = &signal;
  }
  /// Reads the rest of the log and then the lines that it did not take; returns all lines since
  /// follow().
  nlohmann::ordered_json finish(std::vector<nlohmann::ordered_json> unwritten);
  /// Prints a line that stays.
  void print(const std::string& line);

  void phase(const std::string& name, std::size_t items) override { progress_.phase(name, items); }
  void begin(const std::string& item, const std::string& detail) override {
    progress_.begin(item, detail);
  }
  void end(std::optional<double> step_ms) override { progress_.end(step_ms); }
  void tick() override;
  bool interrupted() override;
  void note(const std::string& line) override { progress_.note(line); }

 private:
  void read();
  void take(std::vector<nlohmann::ordered_json> lines);
  void tell(const nlohmann::ordered_json& line);
  void tell_of_step(const nlohmann::ordered_json& line);
  void tell_of_epoch(const nlohmann::ordered_json& line);
  void tell_of_checkpoint(const nlohmann::ordered_json& line);
  void close_epoch();
  void ask_for_checkpoint();

  bool quiet_;
  bool evaluates_only_;
  std::string stop_file_;
  std::string save_file_;
  const bench::RequestSignal* saves_ = nullptr;
  bool asked_to_save_ = false;
  std::int64_t classes_ = 0;
  bench::Progress progress_;
  std::optional<training::LogReader> log_;
  nlohmann::ordered_json lines_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json step_;  // last step; null: none of this epoch
  std::int64_t replicas_ = 1;
  double seconds_before_epoch_ = 0;
  std::int64_t samples_before_epoch_ = 0;
};

}  // namespace stratagem::tools
