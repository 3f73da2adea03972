#include "bench/measure/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reports/record_json.h"
#include "tests/file_size_limit.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::partial_file_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class PartialFileTest : public testing::Test {
 protected:
  static FinishedLaunch launch(std::size_t row, std::int64_t round) {
    reports::Repetition repetition;
    repetition.step_ms = {1.5, 2.5};
    return {.row = row, .round = round, .repetitions = {repetition}};
  }

  std::string refusal(const PartialPlan& plan) const {
    try {
      read_partial(path_, plan);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "results.json.partial";
  const PartialPlan plan_{.rows = {{{"split_size", 1}}, {{"split_size", 2}}},
                          .identity = {{"build", "abc"}, {"environment", "A=1"}}};
};

TEST_F(PartialFileTest, GivesBackWhatWasAppended) {
  PartialFile file(path_);
  file.begin(plan_, {});
  file.append(launch(1, 0));
  file.append(launch(0, 0));
  const auto finished = read_partial(path_, plan_);
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].row, 1u);
  EXPECT_EQ(finished[1].row, 0u);
  ASSERT_EQ(finished[1].repetitions.size(), 1U);
  EXPECT_EQ(reports::to_json(finished[1].repetitions.front()),
            reports::to_json(launch(0, 0).repetitions.front()));
}

TEST_F(PartialFileTest, WhatAFullDiskDoesNotTakeWaits) {
  PartialFile file(path_);
  file.begin(plan_, {});
  file.append(launch(0, 0));
  const auto size = fs::file_size(path_);
  {
    const FileSizeLimit full(size + 7);
    EXPECT_THROW(file.append(launch(1, 0)), std::system_error);
    EXPECT_EQ(fs::file_size(path_), size) << "no part of a line stays";
    EXPECT_FALSE(file.is_whole());
  }
  file.append(launch(0, 1));
  EXPECT_TRUE(file.is_whole());
  EXPECT_EQ(read_partial(path_, plan_).size(), 3u);
}

TEST_F(PartialFileTest, BeginsLaterWhereThereWasNoRoom) {
  PartialFile file(path_);
  {
    const FileSizeLimit full(3);
    EXPECT_THROW(file.begin(plan_, {}), std::system_error);
    EXPECT_EQ(fs::file_size(path_), 0u);
  }
  file.append(launch(0, 0));
  EXPECT_EQ(read_partial(path_, plan_).size(), 1u);
}

TEST_F(PartialFileTest, BeginsWithWhatWasFinishedBefore) {
  const std::vector<FinishedLaunch> before = {launch(0, 0)};
  PartialFile file(path_);
  file.begin(plan_, before);
  file.append(launch(0, 1));
  EXPECT_EQ(read_partial(path_, plan_).size(), 2u);
}

TEST_F(PartialFileTest, LeavesOutALineThatWasCutOff) {
  PartialFile file(path_);
  file.begin(plan_, {});
  file.append(launch(0, 0));
  file.append(launch(1, 0));
  fs::resize_file(path_, fs::file_size(path_) - 10);
  EXPECT_EQ(read_partial(path_, plan_).size(), 1u);
}

TEST_F(PartialFileTest, NoFileMeansNothingFinished) {
  EXPECT_TRUE(read_partial(path_, plan_).empty());
}

TEST_F(PartialFileTest, SaysWhichOptionDiffers) {
  PartialFile file(path_);
  file.begin(plan_, {});
  EXPECT_THAT(
      refusal({.rows = {{{"split_size", 1}}, {{"split_size", 3}}}, .identity = plan_.identity}),
      HasSubstr("row 2 has split_size 2 in the file but 3 in this command"));
  EXPECT_THAT(refusal({.rows = {{{"split_size", 1}}}, .identity = plan_.identity}),
              HasSubstr("2 rows, but this command has 1"));
}

TEST_F(PartialFileTest, RefusesLaunchesOfAnotherBuildMachineOrEnvironment) {
  PartialFile file(path_);
  file.begin(plan_, {launch(0, 0)});
  PartialPlan other = plan_;
  other.identity["build"] = "abd";
  EXPECT_THAT(refusal(other), HasSubstr("another build"));
  other = plan_;
  other.identity["environment"] = "A=2";
  EXPECT_THAT(refusal(other),
              HasSubstr(R"(its launches have environment "A=1", but this run has "A=2")"));
  other = plan_;
  other.identity["host"] = "elsewhere";
  EXPECT_THAT(refusal(other),
              HasSubstr(R"(its launches have host null, but this run has "elsewhere")"));
}

TEST_F(PartialFileTest, RefusesAFileOfSomethingElse) {
  std::ofstream(path_) << "{\"context\":{}}\n";
  EXPECT_THAT(refusal(plan_), HasSubstr("not a file of unfinished results"));
  std::ofstream(path_) << R"({"schema":"stratagem-partial/1","build":"abc","rows":[]})"
                       << "\n";
  EXPECT_THAT(refusal(plan_), HasSubstr("an earlier version of stratagem wrote it"));
  std::ofstream(path_) << "not JSON at all\n";
  EXPECT_THAT(refusal(plan_), HasSubstr("not a file of unfinished results"));
}

TEST_F(PartialFileTest, RefusesDamageInTheMiddle) {
  {
    PartialFile file(path_);
    file.begin(plan_, {launch(0, 0)});
  }
  std::ofstream(path_, std::ios::app)
      << "damage\n"
      << json{{"row", 1}, {"round", 0}, {"repetitions", {}}} << "\n";
  EXPECT_THAT(refusal(plan_), HasSubstr("not a finished launch"));
}

TEST_F(PartialFileTest, ForgetsWhatItHeldWhenItBeginsAnew) {
  {
    PartialFile longer(path_);
    longer.begin(plan_, {launch(0, 0), launch(1, 0)});
  }
  PartialFile file(path_);
  file.begin(plan_, {launch(1, 1)});
  const auto finished = read_partial(path_, plan_);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].round, 1);
}

TEST_F(PartialFileTest, KeepsASecondRunAwayUntilItEnds) {
  {
    PartialFile first(path_);
    first.begin(plan_, {});
    try {
      PartialFile second(path_);
      FAIL() << "two runs write one file";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("in use by another run"));
    }
    first.append(launch(0, 0));
    EXPECT_EQ(read_partial(path_, plan_).size(), 1u);
    // Whoever removes it at its end leaves the name to others.
    fs::remove(path_);
    EXPECT_NO_THROW(PartialFile third(path_));
  }
  EXPECT_NO_THROW(PartialFile fourth(path_));
}

TEST_F(PartialFileTest, LeavesNoEmptyFileBehind) {
  { const PartialFile file(path_); }
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(PartialFileTest, SaysThatTheDiskIsFullToEachRunThatWritesThere) {
  fs::create_symlink("/dev/full", path_);
  const PartialFile another(path_);
  PartialFile file(path_);
  try {
    file.append(launch(0, 0));
    FAIL() << "wrote to a full disk";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOSPC);
    EXPECT_THAT(error.what(), HasSubstr(path_.string()));
  }
}

}  // namespace
}  // namespace stratagem::bench::partial_file_test
