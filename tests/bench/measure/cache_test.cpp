#include "bench/measure/cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/environment_variable.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::cache_test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  fs::path only_file() const { return fs::directory_iterator(folder_)->path(); }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_ / "cache";
  Cache cache_{folder_};
  const json question_ = {{"model", "toy"}, {"build", "abc"}};
  const json answer_ = {{"passed", true}, {"max_relative_error", 1e-13}};
};

TEST_F(CacheTest, FindsWhatWasStored) {
  EXPECT_FALSE(cache_.find("verify", question_));
  EXPECT_TRUE(cache_.store("verify", question_, answer_));
  EXPECT_EQ(Cache(folder_).find("verify", question_), answer_);
}

TEST_F(CacheTest, KeepsKindsAndQuestionsApart) {
  cache_.store("verify", question_, answer_);
  EXPECT_FALSE(cache_.find("calibrate", question_));
  EXPECT_FALSE(cache_.find("verify", {{"model", "toy"}, {"build", "abd"}}));
}

TEST_F(CacheTest, TakesADamagedFileForAMiss) {
  cache_.store("verify", question_, answer_);
  fs::resize_file(only_file(), fs::file_size(only_file()) / 2);
  EXPECT_FALSE(cache_.find("verify", question_));
  cache_.store("verify", question_, answer_);
  EXPECT_TRUE(cache_.find("verify", question_));
}

TEST_F(CacheTest, TakesTheAnswerToAnotherQuestionForAMiss) {
  cache_.store("verify", question_, answer_);
  std::ofstream(only_file()) << json{{"question", "another"}, {"answer", answer_}};
  EXPECT_FALSE(cache_.find("verify", question_));
}

TEST_F(CacheTest, LeavesNoFileAside) {
  cache_.store("verify", question_, answer_);
  cache_.store("verify", question_, answer_);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CacheTest, DoesWithoutAFolderThatCannotBeWritten) {
  const Cache nowhere("/proc/stratagem-cache");
  EXPECT_FALSE(nowhere.store("verify", question_, answer_));
  EXPECT_FALSE(nowhere.find("verify", question_));
}

TEST(CacheFolder, FollowsTheEnvironment) {
  const EnvironmentVariable cache("XDG_CACHE_HOME", "/some/where");
  EXPECT_EQ(default_cache_folder(), "/some/where/stratagem");
}

}  // namespace
}  // namespace stratagem::bench::cache_test
