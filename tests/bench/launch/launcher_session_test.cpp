#include "bench/launch/launcher_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "bench/launch/exit_codes.h"
#include "strategies/registry.h"

namespace stratagem::bench::launcher_session_test {
namespace {

STRATAGEM_REGISTER(strategies::StrategyEntry{
    .name = "session_replicated", .multi_device = true, .dimensions = {"data"}});

using Variables = std::map<std::string, std::string>;

LauncherSession session_with(const Variables& variables) {
  return LauncherSession({}, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

LauncherSession rank_of_two(const char* rank) {
  return session_with({{"TORCHELASTIC_RUN_ID", "abc"},
                       {"RANK", rank},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "10.0.0.1"},
                       {"MASTER_PORT", "29400"}});
}

TEST(LauncherSession, AloneRunsTheBodyWithoutACluster) {
  const LauncherSession session = session_with({});
  EXPECT_TRUE(session.is_alone());
  EXPECT_TRUE(session.is_first());
  EXPECT_EQ(session.run({},
                        [](const Interrupt& interrupt, Cluster* cluster) {
                          EXPECT_FALSE(interrupt.raised());
                          EXPECT_EQ(cluster, nullptr);
                          return 7;
                        }),
            7);
}

TEST(LauncherSession, OnlyTheFirstRankSaysThatNothingMatched) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(rank_of_two("1").nothing_matched("program: why"), exit_codes::nothing_matched);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(rank_of_two("0").nothing_matched("program: why"), exit_codes::nothing_matched);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "program: why\n");
}

TEST(LauncherSession, TheLaunchersRanksAreTheRanks) {
  std::int64_t ranks = 3;
  session_with({}).fit(ranks, /*by_user=*/true);
  EXPECT_EQ(ranks, 3);
  rank_of_two("0").fit(ranks, /*by_user=*/false);
  EXPECT_EQ(ranks, 2);
  rank_of_two("0").fit(ranks, /*by_user=*/true);
  ranks = 3;
  EXPECT_THROW(rank_of_two("0").fit(ranks, /*by_user=*/true), std::invalid_argument);
}

TEST(LauncherSession, KeepsRowsForOneRankOrAll) {
  std::vector<Config> rows(1);
  rows[0].strategy = "session_replicated";
  rows[0].devices = 4;
  session_with({}).fit(rows);
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_THROW(rank_of_two("0").fit(rows), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::bench::launcher_session_test
