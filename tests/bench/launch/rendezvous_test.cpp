#include "bench/launch/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace stratagem::bench::rendezvous_test {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<LauncherContext> launched_by(const LauncherOptions& options,
                                           const Variables& variables = {}) {
  return launcher_context(options, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const LauncherOptions& options, const Variables& variables = {}) {
  try {
    launched_by(options, variables);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

const Variables by_torchrun = {{"TORCHELASTIC_RUN_ID", "abc"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"RANK", "0"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "10.0.0.1"},
                               {"MASTER_PORT", "29400"}};

TEST(LauncherContext, NothingForAProcessAlone) {
  EXPECT_FALSE(launched_by({}).has_value());
  Variables one = by_torchrun;
  one["WORLD_SIZE"] = "1";
  EXPECT_FALSE(launched_by({}, one).has_value());
}

TEST(LauncherContext, ALaunchersWord) {
  const auto found = launched_by({}, by_torchrun);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->launcher, "torchrun");
  EXPECT_EQ(found->info.world_size, 2);
  EXPECT_EQ(found->store.name(), "10.0.0.1:29400");
  EXPECT_FALSE(found->store.serve) << "torchrun does";
  EXPECT_THAT(found->store.prefix, HasSubstr("abc"));
}

TEST(LauncherContext, ByHand) {
  const auto found = launched_by({.init_method = "tcp://h:77", .rank = 0, .world_size = 3});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->store.name(), "h:77");
  EXPECT_TRUE(found->store.serve);
  EXPECT_FALSE(launched_by({.init_method = "tcp://h:77", .rank = 1, .world_size = 3})->store.serve);
  EXPECT_EQ(launched_by({.init_method = "file:///dev/y", .rank = 1, .world_size = 3})->store.name(),
            "/dev/y");
  EXPECT_EQ(launched_by({.init_method = "file://y", .rank = 1, .world_size = 3})->store.name(),
            "y");
}

TEST(LauncherContext, TheCommandLineGoesBeforeTheLauncher) {
  const auto found = launched_by({.init_method = "tcp://other:5"}, by_torchrun);
  EXPECT_EQ(found->store.name(), "other:5");
  EXPECT_TRUE(found->store.serve);
  EXPECT_EQ(found->info.rank, 0);
}

TEST(LauncherContext, AnIpv6AddressIsInBrackets) {
  const auto found = launched_by({.init_method = "tcp://[fe80::1]:77", .rank = 0, .world_size = 3});
  EXPECT_EQ(found->store.address, "fe80::1");
  EXPECT_EQ(found->store.port, 77);
  EXPECT_EQ(found->store.name(), "[fe80::1]:77");
  Variables variables = by_torchrun;
  variables["MASTER_ADDR"] = "::1";
  EXPECT_EQ(launched_by({}, variables)->store.name(), "[::1]:29400");
}

TEST(LauncherContext, RanksOnSeveralHostsNeedTheMaster) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  EXPECT_THAT(refusal({}, variables), HasSubstr("mpirun -x MASTER_ADDR=HOST"));
  EXPECT_EQ(launched_by({.init_method = "tcp://h:77"}, variables)->store.name(), "h:77");
  variables["MASTER_ADDR"] = "hosta";
  variables["MASTER_PORT"] = "5000";
  EXPECT_EQ(launched_by({}, variables)->store.name(), "hosta:5000");
}

TEST(LauncherContext, MpiexecsRanksNeedAPort) {
  Variables variables = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  EXPECT_EQ(refusal({}, variables),
            "--init-method: MASTER_PORT is not set in the environment; set it, or give "
            "tcp://HOST:PORT");
  EXPECT_EQ(launched_by({.init_method = "tcp://h:77"}, variables)->info.rank, 1);
  variables["MASTER_PORT"] = "5000";
  EXPECT_EQ(launched_by({}, variables)->store.name(), "127.0.0.1:5000");
}

TEST(LauncherContext, AnUnknownMpiNeedsRankAndWorldSize) {
  const Variables variables = {{"PMIX_RANK", "1"}};
  const std::string one_line =
      "PMIX_RANK=1: an MPI that Stratagem does not know started this process; give --init-method "
      "tcp://HOST:PORT, --rank and --world-size, for example with sh -c '... --rank $PMIX_RANK'";
  EXPECT_EQ(refusal({}, variables), one_line);
  EXPECT_EQ(refusal({.init_method = "tcp://h:7"}, variables), one_line);
  EXPECT_FALSE(launched_by({.rank = 0, .world_size = 1}, variables).has_value());
  EXPECT_EQ(
      launched_by({.init_method = "tcp://h:7", .rank = 1, .world_size = 2}, variables)->info.rank,
      1);
}

TEST(LauncherContext, RefusesInOneLine) {
  EXPECT_THAT(refusal({.init_method = "http://x", .rank = 0, .world_size = 2}),
              HasSubstr("expected env://, tcp://HOST:PORT, tcp://[IPV6]:PORT or file://PATH"));
  for (const char* wrong : {"tcp://x", "tcp://:1", "tcp://x:y", "tcp://x:0", "tcp://::1:7",
                            "tcp://[]:1", "tcp://[::1]", "file://", "file:///no/such/folder/y"}) {
    EXPECT_THAT(refusal({.init_method = wrong, .rank = 0, .world_size = 2}), HasSubstr(wrong));
  }
  EXPECT_THAT(refusal({.init_method = "tcp://x:1", .rank = 0}), HasSubstr("--world-size"));
  EXPECT_THAT(refusal({.rank = 2, .world_size = 2}), HasSubstr("--rank 2: expected 0 to 1"));
  EXPECT_THAT(refusal({.rank = 1, .world_size = 2}), HasSubstr("MASTER_PORT"));
}

TEST(FitToWorld, OffersRanksAndDevices) {
  Selection selection;
  apply_world_size(selection, *launched_by({}, by_torchrun));
  EXPECT_EQ(selection.options.at("ranks").texts, std::vector<std::string>{"2"});
  EXPECT_EQ(selection.options.at("devices").texts, std::vector<std::string>{"2"});
  selection.options["devices"].texts = {"4"};
  apply_world_size(selection, *launched_by({}, by_torchrun));
  EXPECT_EQ(selection.options.at("devices").texts, std::vector<std::string>{"4"});
}

TEST(FitToWorld, RefusesAnotherNumberOfRanks) {
  Selection selection;
  selection.options["ranks"] = {{"3"}, Origin::command_line, "--ranks"};
  try {
    apply_world_size(selection, *launched_by({}, by_torchrun));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "--ranks: 2 ranks were started (torchrun); leave the option out, or give 2");
  }
}

}  // namespace
}  // namespace stratagem::bench::rendezvous_test
