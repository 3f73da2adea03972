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
  /// Whether its worker is a child of this process.
  virtual bool is_local() const { return true; }

  /// Descriptors to wait on for news; -1 where nothing (more) comes.
  virtual int result_fd() const { return -1; }
  virtual int output_fd() const { return -1; }

  /// Reads what there is without waiting. True: its activity or its result has changed.
  virtual bool read() = 0;
  /// Whether it has ended; `result()` is known then.
  virtual bool ended() = 0;
  virtual void kill() = 0;
  /// The result has come to its end, so that it has only to leave.
  virtual bool leaving() const = 0;
  /// Why nothing can be expected of it, though it has not ended: "was stopped (SIGSTOP?)".
  virtual std::optional<std::string> stall_reason() const = 0;

  /// What its end means.
  virtual const LaunchResult& result() const = 0;
  /// How much a failure explains: that of another rank is the least.
  enum class FailureCause { crashed, failed, peer_lost };
  virtual FailureCause cause() const = 0;

  /// A failure of this rank with what it did last.
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
