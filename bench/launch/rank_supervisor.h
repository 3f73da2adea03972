// RankSupervisor waits for all ranks of a job, or for the first that fails, and names the cause.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "bench/launch/rank_handle.h"

namespace stratagem::bench {

using RankHandles = std::vector<std::unique_ptr<RankHandle>>;

class RankSupervisor {
 public:
  /// Both references outlive it. `ranks` begins with rank 0, or with the only one that concerns
  /// this process. It waits no longer than `patience` for a rank that stands still.
  RankSupervisor(RankHandles& ranks, const LaunchOptions& options,
                 std::chrono::duration<double> patience);

  LaunchResult run();

 private:
  using Clock = std::chrono::steady_clock;

  void wait_for_news();
  bool is_unwanted();
  bool all_ended() const;
  bool somebody_failed() const;
  /// Returns whether some failure is more than the loss of another rank.
  bool is_explained() const;
  /// Returns whether every rank has given its result and only has to exit.
  bool leaving() const;
  std::chrono::duration<double> limit() const;
  LaunchResult conclusion() const;
  const RankHandle* absent_rank() const;
  LaunchResult absent(const RankHandle& rank) const;
  LaunchResult hung();
  void kill_all() const;

  RankHandles& ranks_;
  const LaunchOptions& options_;
  std::chrono::duration<double> patience_;
  Clock::time_point last_news_;
  std::optional<Clock::time_point> failed_since_;
  std::optional<Clock::time_point> leaving_since_;  // when interrupted workers began to end
};

}  // namespace stratagem::bench
