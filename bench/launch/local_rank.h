// LocalRank: the worker of one rank, what was received from it, and what its end means.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/launch/rank_handle.h"
#include "bench/launch/worker_process.h"
#include "bench/machine/machine.h"
#include "strategies/runtime/progress_page.h"

namespace stratagem::bench {

class LocalRank final : public RankHandle {
 public:
  /// Starts the worker, which inherits `store_fd` if there is one.
  LocalRank(int rank, const Job& job, const LaunchOptions& options, int store_fd);

  int result_fd() const override { return result_open_ ? worker_.result_fd() : -1; }
  int output_fd() const override { return output_open_ ? worker_.output_fd() : -1; }
  bool read() override;
  bool ended() override;
  void kill() override;
  bool leaving() const override { return !result_open_; }
  std::optional<std::string> stall_reason() const override;
  const LaunchResult& result() const override { return result_; }
  FailureCause cause() const override { return cause_; }
  std::string host() const override { return host_name(); }
  std::string last_action() const override { return page_.summary(); }

 private:
  void read_result();
  void read_output();
  void conclude();
  LaunchResult answered(const nlohmann::json& answer);
  std::string description_of_end() const;
  std::string with_output(const std::string& message) const;

  bool verbose_;
  runtime::ProgressPage page_;
  WorkerProcess worker_;
  bool result_open_ = true;
  bool output_open_ = true;
  bool concluded_ = false;
  FailureCause cause_ = FailureCause::failed;
  std::string answer_;
  std::string output_;
  std::string activity_;
  LaunchResult result_;
};

}  // namespace stratagem::bench
