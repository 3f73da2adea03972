#include "bench/machine/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "tests/environment_variable.h"

namespace stratagem::bench {
namespace {

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

/// Returns a new terminal.
File new_terminal() { return {::fdopen(::posix_openpt(O_RDWR | O_NOCTTY), "r+"), &std::fclose}; }

TEST(Terminal, ADumbOneHasNeitherColorNorReplacedLines) {
  const File terminal = new_terminal();
  ASSERT_NE(terminal, nullptr);
  const EnvironmentVariable no_color("NO_COLOR", std::nullopt);
  const EnvironmentVariable type("TERM", "xterm-256color");
  EXPECT_TRUE(can_replace_lines(terminal.get()));
  EXPECT_TRUE(has_color(terminal.get()));
  for (const char* dumb : {"dumb", ""}) {
    type.set(dumb);
    EXPECT_FALSE(can_replace_lines(terminal.get())) << dumb;
    EXPECT_FALSE(has_color(terminal.get())) << dumb;
  }
}

TEST(Terminal, NoColorTakesOnlyTheColors) {
  const File terminal = new_terminal();
  ASSERT_NE(terminal, nullptr);
  const EnvironmentVariable type("TERM", "xterm");
  const EnvironmentVariable no_color("NO_COLOR", "1");
  EXPECT_FALSE(has_color(terminal.get()));
  EXPECT_TRUE(can_replace_lines(terminal.get()));
  no_color.set("");  // an empty value counts as unset
  EXPECT_TRUE(has_color(terminal.get()));
}

TEST(Terminal, AFileHasNone) {
  const EnvironmentVariable type("TERM", "xterm");
  const File file(std::tmpfile(), &std::fclose);
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(can_replace_lines(file.get()));
  EXPECT_FALSE(has_color(file.get()));
  EXPECT_EQ(terminal_width(file.get()), std::nullopt);
}

}  // namespace
}  // namespace stratagem::bench
