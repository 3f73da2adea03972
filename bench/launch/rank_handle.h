// RankHandle: one rank of a job as its controller sees it, on this host or another.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "bench/launch/launch.h"

namespace stratagem::bench {

class RankHandle {
 public:
  explicit RankHandle(int rank) : rank_(rank) {}
  virtual ~RankHandle() = default;
  RankHandle(const RankHandle&) = delete;
  RankHandle& operator=(const RankHandle&) = delete;

  int rank() const { return rank_; }
  /// Returns whether its worker is a child of this process.
  virtual bool is_local() const { return true; }

  /// Returns a descriptor to wait on for news; -1 if none comes (any more).
  virtual int result_fd() const { return -1; }
  virtual int output_fd() const { return -1; }

  /// Reads what there is without waiting. Returns whether its activity or result has changed.
  virtual bool read() = 0;
  /// Returns whether it has ended, after which `result()` is known.
  virtual bool ended() = 0;
  virtual void kill() = 0;
  /// Returns whether its result is complete, so that it has only to leave.
  virtual bool leaving() const = 0;
  /// Returns why it stands still, though it has not ended: "was stopped (SIGSTOP?)".
  virtual std::optional<std::string> stall_reason() const = 0;

  /// Returns what its end means.
  virtual const LaunchResult& result() const = 0;
  /// The causes by how much they explain: the failure of another rank explains least.
  enum class FailureCause { crashed, failed, peer_lost };
  virtual FailureCause cause() const = 0;

  /// Returns a failure of this rank with its last action.
  LaunchResult failed(LaunchStatus status, std::string message) const {
    return {.status = status,
            .result = {},
            .error = {.rank = rank_,
                      .host = host(),
                      .last_action = last_action(),
                      .message = std::move(message)}};
  }
  virtual std::string last_action() const = 0;
  virtual std::string host() const = 0;

 private:
  int rank_;
};

}  // namespace stratagem::bench
