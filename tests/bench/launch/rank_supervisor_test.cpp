// How long ranks are waited for, with ranks that never end.
#include "bench/launch/rank_supervisor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace stratagem::bench::rank_supervisor_test {
namespace {

using namespace std::chrono_literals;

/// Runs until it is killed.
class EndlessRank final : public RankHandle {
 public:
  EndlessRank(int rank, bool leaving) : RankHandle(rank), leaving_(leaving) {}

  bool read() override { return false; }
  bool ended() override { return killed_; }
  void kill() override { killed_ = true; }
  bool leaving() const override { return leaving_; }
  std::optional<std::string> stall_reason() const override { return std::nullopt; }
  const LaunchResult& result() const override { return result_; }
  FailureCause cause() const override { return FailureCause::failed; }
  std::string last_action() const override { return ""; }
  std::string host() const override { return ""; }

 private:
  bool leaving_;
  bool killed_ = false;
  LaunchResult result_;
};

struct Limits {
  std::chrono::duration<double> result;
  std::chrono::duration<double> leave;
};

/// What is said of ranks that have given their results, or have not.
std::string said_of(const std::vector<bool>& leaving, const Limits& limits) {
  RankHandles ranks;
  for (const bool each : leaving) {
    ranks.push_back(std::make_unique<EndlessRank>(static_cast<int>(ranks.size()), each));
  }
  LaunchOptions options;
  options.limit = limits.result;
  options.leave_limit = limits.leave;
  const LaunchResult launched = RankSupervisor(ranks, options, 1h).run();
  EXPECT_EQ(launched.status, LaunchStatus::hung);
  for (const auto& rank : ranks) EXPECT_TRUE(rank->ended()) << "rank " << rank->rank();
  return launched.error.message;
}

TEST(RankSupervisor, AWorkerThatDoesNotLeaveIsNotWaitedForAsOneThatWorks) {
  EXPECT_EQ(said_of({true, true}, {.result = 3s, .leave = 10ms}),
            "rank 0 hung: it returned its result but did not exit within 0.01 s; last action none");
  EXPECT_EQ(LaunchOptions().leave_limit, 5s);
}

TEST(RankSupervisor, AWorkerMayNotTakeLongerToLeaveThanToWork) {
  EXPECT_EQ(said_of({true}, {.result = 10ms, .leave = 3s}),
            "rank 0 hung: it returned its result but did not exit within 0.01 s; last action none");
}

TEST(RankSupervisor, WhoeverLeavesMayWaitForAnotherRanksWork) {
  EXPECT_EQ(said_of({true, false}, {.result = 30ms, .leave = 10ms}),
            "rank 0 hung: no result within 0.03 s; last action none");
}

}  // namespace
}  // namespace stratagem::bench::rank_supervisor_test
