#include "bench/join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace stratagem::bench {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<Invitation> invited(const JoinOptions& options, const Variables& variables = {}) {
  return invitation(options, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const JoinOptions& options, const Variables& variables = {}) {
  try {
    invited(options, variables);
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

TEST(Invitation, NothingForAProcessAlone) {
  EXPECT_FALSE(invited({}).has_value());
  Variables one = by_torchrun;
  one["WORLD_SIZE"] = "1";
  EXPECT_FALSE(invited({}, one).has_value());
}

TEST(Invitation, ALaunchersWord) {
  const auto found = invited({}, by_torchrun);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->launcher, "torchrun");
  EXPECT_EQ(found->place.world_size, 2);
  EXPECT_EQ(found->meeting.name(), "10.0.0.1:29400");
  EXPECT_FALSE(found->meeting.serve) << "torchrun does";
  EXPECT_THAT(found->meeting.prefix, HasSubstr("abc"));
}

TEST(Invitation, ByHand) {
  const auto found = invited({.init_method = "tcp://h:77", .rank = 0, .world_size = 3});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->meeting.name(), "h:77");
  EXPECT_TRUE(found->meeting.serve);
  EXPECT_FALSE(invited({.init_method = "tcp://h:77", .rank = 1, .world_size = 3})->meeting.serve);
  EXPECT_EQ(invited({.init_method = "file://x/y", .rank = 1, .world_size = 3})->meeting.name(),
            "x/y");
}

TEST(Invitation, TheCommandLineGoesBeforeTheLauncher) {
  const auto found = invited({.init_method = "tcp://other:5"}, by_torchrun);
  EXPECT_EQ(found->meeting.name(), "other:5");
  EXPECT_TRUE(found->meeting.serve);
  EXPECT_EQ(found->place.rank, 0);
}

TEST(Invitation, RefusesInOneLine) {
  EXPECT_THAT(refusal({.init_method = "http://x", .rank = 0, .world_size = 2}),
              HasSubstr("expected env://, tcp://HOST:PORT or file://PATH"));
  for (const char* wrong : {"tcp://x", "tcp://:1", "tcp://x:y", "tcp://x:0", "file://"}) {
    EXPECT_THAT(refusal({.init_method = wrong, .rank = 0, .world_size = 2}), HasSubstr(wrong));
  }
  EXPECT_THAT(refusal({.init_method = "tcp://x:1", .rank = 0}), HasSubstr("--world-size"));
  EXPECT_THAT(refusal({.rank = 2, .world_size = 2}), HasSubstr("--rank 2"));
  EXPECT_THAT(refusal({.rank = 1, .world_size = 2}), HasSubstr("MASTER_PORT"));
}

TEST(FitToWorld, OffersRanksAndDevices) {
  Selection selection;
  fit_to_world(selection, *invited({}, by_torchrun));
  EXPECT_EQ(selection.options.at("ranks").texts, std::vector<std::string>{"2"});
  EXPECT_EQ(selection.options.at("devices").texts, std::vector<std::string>{"2"});
  selection.options["devices"].texts = {"4"};
  fit_to_world(selection, *invited({}, by_torchrun));
  EXPECT_EQ(selection.options.at("devices").texts, std::vector<std::string>{"4"});
}

TEST(FitToWorld, RefusesAnotherNumberOfRanks) {
  Selection selection;
  selection.options["ranks"] = {{"3"}, Origin::command_line, "--ranks"};
  try {
    fit_to_world(selection, *invited({}, by_torchrun));
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--ranks: torchrun started 2 ranks; leave it out, or say 2");
  }
}

}  // namespace
}  // namespace stratagem::bench
