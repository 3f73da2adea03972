#include "bench/measure/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace stratagem::bench::progress_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProgressLine, ShowsWhereTheMeasurementStands) {
  const ProgressLine line{.index = 7,
                          .items = 33,
                          .text = "measuring pipeline split:12 round 2/3",
                          .step_ms = 1592,
                          .remaining_seconds = 219.5};
  EXPECT_EQ(line.render(200),
            "[ 7/33] measuring pipeline split:12 round 2/3  step 1.59 s  ETA 3:40");
}

TEST(ProgressLine, LeavesOutWhatIsNotKnown) {
  const ProgressLine line{.index = 1, .items = 2, .text = "verifying toy"};
  EXPECT_EQ(line.render(200), "[1/2] verifying toy");
}

TEST(ProgressLine, CutsTheTextAndKeepsTheTimes) {
  const ProgressLine line{.index = 1,
                          .items = 2,
                          .text = std::string(100, 'x'),
                          .step_ms = 2.5,
                          .remaining_seconds = 3700};
  const std::string shown = line.render(50);
  EXPECT_EQ(shown.size(), 50u);
  EXPECT_THAT(shown, HasSubstr("xx  step 2.50 ms  ETA 1:01:40"));
  EXPECT_LE(line.render(10).size(), 10u);
}

std::string written(Progress::Style style) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  {
    Progress progress(style, file.get());
    progress.phase("measuring", 2);
    progress.begin("toy", "round 1/2");
    progress.end(1.5);
    progress.note("toy: lost");
    progress.begin("toy", "round 2/2");
  }
  std::rewind(file.get());
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

TEST(Progress, UpdatesOneLineInPlace) {
  const std::string text = written(Progress::Style::line);
  EXPECT_THAT(text, HasSubstr("\r[1/2] measuring toy round 1/2"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[Ktoy: lost\n"));
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(Progress, WritesALineForEachRoundButTheLastIntoAFile) {
  const std::string text = written(Progress::Style::notes);
  EXPECT_THAT(text, testing::StartsWith("toy: lost\n[1/2] measuring round 1/2  ETA 0:0"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(Progress, CanBeSilent) { EXPECT_EQ(written(Progress::Style::silent), ""); }

}  // namespace
}  // namespace stratagem::bench::progress_test
