#include "training/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "tests/file_size_limit.h"
#include "tests/temporary_folder.h"

namespace stratagem::training::log_test {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TrainingLog : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "log";
};

TEST_F(TrainingLog, TheFirstLineIsAnObjectOrNothing) {
  const auto first_of = [this](const std::string& text) {
    std::ofstream(path_) << text;
    return first_line(path_);
  };
  EXPECT_EQ(first_of("{\"event\":\"start\"}\n{\"event\":").at("event"), "start");
  for (const char* text : {"", "\n", "notes\n", "[1]\n", "{\"event\":", "\xff\xfe"}) {
    EXPECT_TRUE(first_of(text).is_null()) << text;
  }
}

TEST_F(TrainingLog, LinesAreReadOnceAndInOrder) {
  LogWriter writer(path_);
  LogReader reader(path_);
  EXPECT_THAT(reader.next(), IsEmpty());
  writer.write({{"event", "step"}, {"loss", 0.25}});
  writer.write({{"event", "end"}});
  const auto lines = reader.next();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].at("loss"), 0.25);
  EXPECT_EQ(lines[1].at("event"), "end");
  EXPECT_THAT(reader.next(), IsEmpty());
}

TEST_F(TrainingLog, ALineThatIsNotWholeWaitsForItsEnd) {
  LogReader reader(path_);
  std::ofstream(path_) << "{\"a\":1}\n{\"b\"";
  EXPECT_THAT(reader.next(), SizeIs(1));
  std::ofstream(path_, std::ios::app) << ":2}\n";
  EXPECT_THAT(reader.next(), SizeIs(1));
}

TEST_F(TrainingLog, NumbersThatAreNotFiniteAreSpelledOut) {
  LogWriter(path_).write({{"loss", std::numeric_limits<double>::quiet_NaN()},
                          {"norms", {1.0, -std::numeric_limits<double>::infinity()}}});
  const ordered_json line = LogReader(path_).next().at(0);
  EXPECT_EQ(line.at("loss"), "nan");
  EXPECT_EQ(line.at("norms"), (ordered_json{1.0, "-inf"}));
}

TEST_F(TrainingLog, WhatIsNoJsonIsNamed) {
  std::ofstream(path_) << "{\n";
  try {
    LogReader(path_).next();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path_ + ": the line that ends at byte 2 is not a JSON"));
  }
}

TEST_F(TrainingLog, AFolderThatIsNotThereIsAnErrorAndNoPathIsNoLog) {
  EXPECT_THROW(LogWriter("no/such/folder/log"), std::system_error);
  LogWriter("").write({{"event", "step"}});
}

TEST_F(TrainingLog, ALineThatDoesNotFitWaitsAndLeavesNoPartOfItself) {
  LogWriter writer(path_);
  writer.write({{"step", 1}});
  const auto whole = std::filesystem::file_size(path_);
  {
    const FileSizeLimit full(whole + 5);
    writer.write({{"step", 2}});
    writer.write({{"step", 3}});
    EXPECT_EQ(std::filesystem::file_size(path_), whole);
    EXPECT_EQ(writer.unwritten(), "{\"step\":2}\n{\"step\":3}\n");
    EXPECT_THROW(writer.require_written(), std::system_error);
  }
  writer.sync();
  writer.require_written();
  EXPECT_EQ(writer.unwritten(), "");
  EXPECT_THAT(LogReader(path_).next(), SizeIs(3));
}

TEST_F(TrainingLog, WholeLinesThatFitAreWrittenBeforeOnesThatDoNot) {
  LogWriter writer(path_);
  {
    const FileSizeLimit full(0);
    for (const int step : {1, 2, 3}) writer.write({{"step", step}});
  }
  const FileSizeLimit room_for_two(25);
  writer.sync();
  EXPECT_EQ(writer.unwritten(), "{\"step\":3}\n");
  EXPECT_THAT(LogReader(path_).next(), SizeIs(2));
}

TEST_F(TrainingLog, IsReadUpToAStepAndToItsEndWhereItIsShorter) {
  LogWriter writer(path_);
  writer.write({{"event", "start"}});
  for (const int step : {1, 2}) writer.write({{"event", "step"}, {"step", step}});
  writer.write({{"event", "evaluation"}, {"step", 2}});
  const auto lines = [&](std::int64_t step) {
    return lines_of(lines_until(path_, step).text, "text").size();
  };
  EXPECT_EQ(lines(1), 2);
  EXPECT_EQ(lines(2), 3) << "the evaluation comes again";
  EXPECT_EQ(lines(9), 4);
  EXPECT_EQ(lines_until(path_, 9).last_step, 2);
}

}  // namespace
}  // namespace stratagem::training::log_test
