// RemoteRank: a rank of a job whose worker another controller runs, known by the notes that it
// leaves at the store.
#pragma once

#include <chrono>
#include <string>

#include "bench/launch/rank_handle.h"
#include "strategies/ranks/key_value_store.h"

namespace stratagem::bench {

/// The keys under which controllers leave notes.
namespace notes {
std::string job(int number);               // rank 0: the job
std::string abort(int number);             // rank 0: the job is called off
std::string answer(int number, int rank);  // each other rank: how its worker ended
std::string heartbeat(int rank);           // a few times a second
}  // namespace notes

/// The end of a rank's worker, which a controller reports to another.
struct RankOutcome {
  LaunchResult launched;  // without a result, except on the first rank
  RankHandle::FailureCause cause = RankHandle::FailureCause::failed;
};

nlohmann::json to_json(const RankOutcome& outcome);

/// Follows the counter in a rank's heartbeat note.
class Heartbeat {
 public:
  Heartbeat(ranks::KeyValueStore& store, int rank);

  /// Returns whether the note has changed since the last call.
  bool refresh();
  std::chrono::duration<double> since_last_heartbeat() const;
  const std::string& activity() const { return activity_; }
  const std::string& host() const { return host_; }
  /// Returns why its worker stands still, from its controller; empty if it does not.
  const std::string& stall_reason() const { return stall_reason_; }

 private:
  ranks::KeyValueStore& store_;
  int rank_;
  std::string note_;
  std::string activity_;
  std::string host_;
  std::string stall_reason_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class RemoteRank final : public RankHandle {
 public:
  RemoteRank(int rank, int job, ranks::KeyValueStore& store);

  bool is_local() const override { return false; }
  bool read() override;
  bool ended() override { return ended_; }
  void kill() override;
  bool leaving() const override { return ended_; }
  std::optional<std::string> stall_reason() const override;
  const LaunchResult& result() const override { return outcome_.launched; }
  FailureCause cause() const override { return outcome_.cause; }
  std::string host() const override { return heartbeat_.host(); }
  std::string last_action() const override { return heartbeat_.activity(); }
  /// Returns whether its controller sends no heartbeats.
  bool silent() const;

 private:
  int job_;
  ranks::KeyValueStore& store_;
  Heartbeat heartbeat_;
  std::chrono::steady_clock::time_point last_look_{};
  std::string activity_;
  bool ended_ = false;
  RankOutcome outcome_;
};

}  // namespace stratagem::bench
