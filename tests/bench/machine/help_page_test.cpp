// The layout of --help.
#include "bench/machine/help_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

namespace stratagem::bench::help_page_test {
namespace {

using testing::HasSubstr;

TEST(Wrapped, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("one two three", 7, 0), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 11, 4), "one two\n    three");
  EXPECT_EQ(wrapped("first\nsecond line", 80, 2), "first\n  second line");
}

TEST(Wrapped, LeavesALongWordWhole) {
  EXPECT_EQ(wrapped("a incomprehensibly b", 6, 2), "a\n  incomprehensibly\n  b");
  EXPECT_EQ(wrapped("", 10, 0), "");
}

class HelpPageTest : public ::testing::Test {
 protected:
  HelpPageTest() : app_("Measures a thing in several ways.", "tool") {
    app_.formatter(std::make_shared<HelpPage>(60));
  }

  int number_ = 0;
  CLI::App app_;
};

TEST_F(HelpPageTest, PutsMeaningsInOneColumn) {
  app_.add_option("--size", number_, "size of what is measured, in units that need two lines")
      ->type_name("N")
      ->group("Common options");
  EXPECT_THAT(app_.help(), HasSubstr("\n\nCommon options:\n"
                                     "  --size N                    size of what is measured, in\n"
                                     "                              units that need two lines\n"));
}

TEST_F(HelpPageTest, PutsTheMeaningOfALongFlagOnTheNextLine) {
  app_.add_option("--a-rather-long-flag-name", number_, "meaning")->type_name("NUMBER");
  EXPECT_THAT(app_.help(), HasSubstr("  --a-rather-long-flag-name NUMBER\n"
                                     "                              meaning\n"));
}

TEST_F(HelpPageTest, IsNeverWiderThanAskedFor) {
  app_.description("A description that is much longer than sixty columns, and so needs two lines.");
  app_.add_option("FILE", number_, "the file that is read before anything else is done with it");
  std::istringstream lines(app_.help());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
}

}  // namespace
}  // namespace stratagem::bench::help_page_test
