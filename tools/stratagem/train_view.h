// What a training says as it goes: lines that stay, and one in place on a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/measure/progress.h"
#include "training/log.h"

namespace stratagem::tools {

class TrainView : public bench::Observer {
 public:
  explicit TrainView(bool quiet) : quiet_(quiet), progress_(bench::Progress::style(quiet)) {}

  /// From now on ticks read this log.
  void follow(training::LogReader log) { log_ = std::move(log); }
  /// On an interrupt the training is told by this file and ends by itself.
  void end_by(std::string stop_file) { stop_file_ = std::move(stop_file); }
  /// Reads what is left of it; returns all lines since follow().
  nlohmann::ordered_json finish();
  /// A line that stays.
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
  void tell(const nlohmann::ordered_json& line);
  void tell_of_step(const nlohmann::ordered_json& line);
  void tell_of_epoch(const nlohmann::ordered_json& line);
  void close_epoch();

  bool quiet_;
  std::string stop_file_;
  bench::Progress progress_;
  std::optional<training::LogReader> log_;
  nlohmann::ordered_json lines_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json step_;  // the last; null: none of this epoch
  std::int64_t replicas_ = 1;
  double seconds_before_epoch_ = 0;
  std::int64_t samples_before_epoch_ = 0;
};

}  // namespace stratagem::tools
