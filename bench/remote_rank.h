// RemoteRank: a rank of a job whose worker another controller runs, known by the notes that it
// leaves at the meeting.
#pragma once

#include <chrono>
#include <string>

#include "bench/launch_json.h"
#include "bench/rank_handle.h"
#include "strategies/runtime/meeting.h"

namespace stratagem::bench {

/// The keys under which controllers leave notes.
namespace notes {
std::string job(int number);               // rank 0: what is to be done
std::string abort(int number);             // rank 0: no more
std::string answer(int number, int rank);  // each other rank: how it ended
std::string presence(int rank);            // a few times a second
}  // namespace notes

/// Follows the counter in a rank's presence note.
class Presence {
 public:
  Presence(runtime::Meeting& meeting, int rank);

  /// True when the note has changed since the last call.
  bool refresh();
  std::chrono::duration<double> silence() const;
  const std::string& activity() const { return activity_; }
  const std::string& host() const { return host_; }
  /// Why its worker stands still, in its controller's words; empty: it does not.
  const std::string& absence() const { return absence_; }

 private:
  runtime::Meeting& meeting_;
  int rank_;
  std::string note_;
  std::string activity_;
  std::string host_;
  std::string absence_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class RemoteRank final : public RankHandle {
 public:
  RemoteRank(int rank, int job, runtime::Meeting& meeting);

  bool is_local() const override { return false; }
  bool read() override;
  bool ended() override { return ended_; }
  void kill() override;
  bool leaving() const override { return ended_; }
  std::optional<std::string> absence() const override;
  const LaunchResult& result() const override { return outcome_.launched; }
  Blame blame() const override { return outcome_.blame; }
  LaunchResult failed(LaunchStatus status, std::string message) const override;
  std::string last_action() const override { return presence_.activity(); }
  /// Nothing is heard of its controller.
  bool silent() const;

 private:
  int job_;
  runtime::Meeting& meeting_;
  Presence presence_;
  std::chrono::steady_clock::time_point last_look_{};
  std::string activity_;
  bool ended_ = false;
  RankOutcome outcome_;
};

}  // namespace stratagem::bench
