#include "reports/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "reports/file_reader.h"
#include "tests/temporary_folder.h"

namespace stratagem::reports::atomic_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string content(const std::string& path) { return read_file(path, "a test file"); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  template <class Call>
  static std::string error_of(Call&& call) {
    try {
      call();
    } catch (const std::system_error& error) {
      return error.what();
    }
    return "no error";
  }

  const TemporaryFolder folder_;
};

TEST_F(AtomicFileTest, WritesAndReplacesAndLeavesNothingElse) {
  write_file_atomically(path("a"), "one");
  write_file_atomically(path("a"), "two");
  EXPECT_EQ(content(path("a")), "two");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFileTest, AReaderOfTheOldFileKeepsIt) {
  write_file_atomically(path("a"), "old");
  std::ifstream reader(path("a"));
  write_file_atomically(path("a"), "new, and longer");
  std::string text;
  std::getline(reader, text);
  EXPECT_EQ(text, "old");
}

TEST_F(AtomicFileTest, FollowsSymbolicLinks) {
  fs::create_directory(folder_ / "below");
  fs::create_symlink("below/target", folder_ / "link");
  write_file_atomically(path("link"), "first");  // the target does not exist yet
  write_file_atomically(path("link"), "second");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(path("below/target")), "second");
}

TEST_F(AtomicFileTest, DevicesAreWrittenInPlace) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(error_of([] { write_file_atomically("/dev/full", "text"); }),
              HasSubstr("No space left"));
}

TEST_F(AtomicFileTest, AnUnwritablePlaceIsOneLineThatNamesIt) {
  const std::string missing = path("missing/results.json");
  for (const std::string& message : {error_of([&] { write_file_atomically(missing, "x"); }),
                                     error_of([&] { check_writable(missing); })}) {
    EXPECT_THAT(message, HasSubstr(missing));
    EXPECT_THAT(message, HasSubstr("No such file or directory"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(error_of([&] { check_writable(folder_.path().string()); }),
              HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { check_writable(""); }), HasSubstr("cannot write \"\""));
  EXPECT_THAT(error_of([&] { check_writable(path(std::string(300, 'x'))); }),
              HasSubstr("File name too long"));
}

TEST_F(AtomicFileTest, TwoOutputsOfOneCommandAreTwoFiles) {
  EXPECT_EQ(error_of([&] {
              check_outputs({path("one"), path("two"), "", "-", "/dev/null"});
            }),
            "no error");
  EXPECT_EQ(error_of([&] { check_outputs({"/dev/null", "/dev/null"}); }), "no error");
  fs::create_symlink("one", folder_ / "link");
  for (const std::string& other : {path("one"), path("./one"), path("link")}) {
    const auto check = [&] { check_outputs({path("one"), other}); };
    EXPECT_THAT(check, testing::ThrowsMessage<std::invalid_argument>(
                           HasSubstr("two outputs share " + other)));
  }
}

TEST_F(AtomicFileTest, CheckingLeavesNoTraceAndKeepsWhatIsThere) {
  check_writable(path("new"));
  EXPECT_EQ(files(), 0U);
  write_file_atomically(path("old"), "kept");
  check_writable(path("old"));
  EXPECT_EQ(content(path("old")), "kept");
  EXPECT_EQ(error_of([] { check_writable("-"); }), "no error");
}

}  // namespace
}  // namespace stratagem::reports::atomic_file_test
