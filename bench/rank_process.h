// RankProcess: the worker of one rank, what was received from it, and how its end is to be read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/launch.h"
#include "bench/worker_process.h"
#include "strategies/runtime/activity_board.h"

namespace stratagem::bench {

class RankProcess {
 public:
  /// Starts it. `store_fd`, where there is one, is inherited.
  RankProcess(int rank, const nlohmann::json& job, const LaunchOptions& options, int store_fd);

  int rank() const { return rank_; }
  /// To wait on for news; -1 where nothing more comes.
  int result_fd() const { return result_open_ ? worker_.result_fd() : -1; }
  int output_fd() const { return output_open_ ? worker_.output_fd() : -1; }
  bool streams_open() const { return result_open_ || output_open_; }

  /// Reads what there is without waiting. True: its activity or its result has changed.
  bool read();
  /// Whether the process has ended; `result()` is known then.
  bool ended();
  void kill();
  /// Whether it stands still because somebody stopped it (SIGSTOP).
  bool stopped() const;
  /// The result has come to its end, so that it has only to leave.
  bool leaving() const { return !result_open_; }

  /// What its end means.
  const LaunchResult& result() const { return result_; }
  /// How much a failure explains: that of another rank is the least.
  enum class Blame { crashed, failed, of_another };
  Blame blame() const { return blame_; }

  /// A failure of this rank with what it did last.
  LaunchResult failed(LaunchStatus status, std::string message) const;
  std::string last_action() const { return board_.summary(); }

 private:
  void read_result();
  void read_output();
  void conclude();
  LaunchResult answered(const nlohmann::json& answer);
  std::string description_of_end() const;
  std::string with_output(const std::string& message) const;

  int rank_;
  bool verbose_;
  runtime::ActivityBoard board_;
  WorkerProcess worker_;
  bool result_open_ = true;
  bool output_open_ = true;
  bool concluded_ = false;
  Blame blame_ = Blame::failed;
  std::string answer_;
  std::string output_;
  std::string activity_;
  LaunchResult result_;
};

}  // namespace stratagem::bench
