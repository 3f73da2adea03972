// In which order a file is flushed and renamed: that decides what a power cut leaves.
#include "training/checkpoint/committed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tests/temporary_folder.h"

namespace stratagem::checkpoint::committed_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

fs::path opened_by(int descriptor) {
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
}

TEST(CommittedFile, IsFlushedBeforeItIsRenamedAndItsFolderAfterwards) {
  const TemporaryFolder temporary;
  const fs::path path = fs::canonical(temporary.path()) / "file";
  std::vector<fs::path> before;
  std::vector<fs::path> after;
  CommittedFile file(path, [&](int descriptor) {
    (fs::exists(path) ? after : before).push_back(opened_by(descriptor));
    return 0;
  });
  file.write("whole", 5);
  file.commit();
  EXPECT_THAT(before, ElementsAre(CommittedFile::partial_of(path)));
  EXPECT_THAT(after, ElementsAre(path.parent_path()));
}

TEST(CommittedFile, MayHaveANameAloneInTheCurrentFolder) {
  const TemporaryFolder temporary;
  const fs::path before = fs::current_path();
  fs::current_path(temporary.path());
  CommittedFile("name").commit();
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(temporary / "name"));
}

TEST(CommittedFile, ThatCannotBeFlushedIsAnError) {
  for (const int failing : {0, 1}) {
    SCOPED_TRACE(failing == 0 ? "the file" : "its folder");
    const TemporaryFolder temporary;
    const fs::path path = temporary / "file";
    int flushes = 0;
    {
      CommittedFile file(path, [&](int) {
        if (flushes++ != failing) return 0;
        errno = EIO;
        return -1;
      });
      try {
        file.commit();
        ADD_FAILURE() << "committed";
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), EIO);
      }
    }
    EXPECT_EQ(fs::exists(path), failing == 1);
    EXPECT_FALSE(fs::exists(CommittedFile::partial_of(path)));
  }
}

}  // namespace
}  // namespace stratagem::checkpoint::committed_file_test
