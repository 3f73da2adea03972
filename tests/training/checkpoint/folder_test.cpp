#include "training/checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "training/checkpoint/committed_file.h"

namespace stratagem::checkpoint::folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

void touch(const fs::path& path) { std::ofstream(path) << "x"; }

std::vector<std::int64_t> steps_in(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  for (const Entry& entry : Folder::entries_in(folder)) steps.push_back(entry.step);
  return steps;
}

TEST(CheckpointFolder, EntriesAreInTheOrderOfTheirSteps) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  const Folder folder(path);
  for (const std::int64_t step : {100, 9, 123456789}) touch(Folder::path_of(path, step));
  for (const char* other : {"step-12.pt.old", "step-x.pt", "best.pt", "step-.pt"}) {
    touch(path / other);
  }
  EXPECT_THAT(steps_in(path), ElementsAre(9, 100, 123456789));
  EXPECT_EQ(folder.entries().front().path.filename(), "step-00000009.pt");
}

TEST(CheckpointFolder, WhatAnEndedRunLeftIsRemoved) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  { const Folder folder(path); }
  touch(CommittedFile::partial_of(Folder::path_of(path, 3)));
  touch(Folder::path_of(path, 2));
  const Folder folder(path);
  EXPECT_FALSE(fs::exists(CommittedFile::partial_of(Folder::path_of(path, 3))));
  EXPECT_THAT(steps_in(path), ElementsAre(2));
}

TEST(CheckpointFolder, OnlyOneRunHasIt) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  const Folder folder(path);
  try {
    const Folder other(path);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("another run is writing there"));
  }
}

TEST(CheckpointFolder, TheLastOnesAreKept) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  const Folder folder(path);
  for (std::int64_t step = 1; step <= 4; ++step) touch(Folder::path_of(path, step));
  Folder::thin_out(path, 0);
  EXPECT_THAT(steps_in(path), ElementsAre(1, 2, 3, 4));
  Folder::thin_out(path, 2);
  EXPECT_THAT(steps_in(path), ElementsAre(3, 4));
}

TEST(CheckpointFolder, AnotherCourseOfATrainingIsSetAside) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  const Folder folder(path);
  for (const std::int64_t step : {5, 10, 20, 30}) touch(Folder::path_of(path, step));
  EXPECT_EQ(Folder::set_aside(path, {10, Folder::path_of(path, 10)}), path / "abandoned-1");
  EXPECT_THAT(steps_in(path), ElementsAre(5, 10));
  EXPECT_THAT(steps_in(path / "abandoned-1"), ElementsAre(20, 30));

  EXPECT_EQ(Folder::set_aside(path, {10, Folder::path_of(path, 10)}), "") << "nothing is left";
  touch(Folder::path_of(path, 15));
  Folder::thin_out(path, 1);
  EXPECT_THAT(steps_in(path), ElementsAre(15)) << "the newest of this course stays";
}

TEST(CheckpointFolder, AllAreAnotherCourseWhereTheCheckpointLiesElsewhere) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "checkpoints";
  const Folder folder(path);
  for (const std::int64_t step : {5, 20}) touch(Folder::path_of(path, step));
  fs::create_directory(path / "abandoned-1");
  touch(temporary / "step-00000010.pt");
  EXPECT_EQ(Folder::set_aside(path, {10, temporary / "step-00000010.pt"}), path / "abandoned-2");
  EXPECT_THAT(steps_in(path), ElementsAre());
  EXPECT_THAT(steps_in(path / "abandoned-2"), ElementsAre(5, 20));
}

TEST(CommittedFile, IsThereWholeOrNotAtAll) {
  const TemporaryFolder temporary;
  const fs::path path = temporary / "file";
  {
    CommittedFile file(path);
    file.write("whole", 5);
  }
  EXPECT_TRUE(fs::is_empty(path.parent_path())) << "what is not committed goes";
  CommittedFile file(path);
  file.write("wh", 2);
  EXPECT_FALSE(fs::exists(path));
  file.write("ole", 3);
  file.commit();
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "whole");
}

}  // namespace
}  // namespace stratagem::checkpoint::folder_test
