#include "training/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace stratagem::training {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string fresh_path(const char* name) {
  std::string path = testing::TempDir() + name;
  std::filesystem::remove(path);
  return path;
}

TEST(TrainingLog, LinesAreReadOnceAndInOrder) {
  const std::string path = fresh_path("stratagem_log_lines");
  LogWriter writer(path);
  LogReader reader(path);
  EXPECT_THAT(reader.next(), IsEmpty());
  writer.write({{"event", "step"}, {"loss", 0.25}});
  writer.write({{"event", "end"}});
  const auto lines = reader.next();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0].at("loss"), 0.25);
  EXPECT_EQ(lines[1].at("event"), "end");
  EXPECT_THAT(reader.next(), IsEmpty());
}

TEST(TrainingLog, ALineThatIsNotWholeWaitsForItsEnd) {
  const std::string path = fresh_path("stratagem_log_part");
  LogReader reader(path);
  std::ofstream(path) << "{\"a\":1}\n{\"b\"";
  EXPECT_THAT(reader.next(), SizeIs(1));
  std::ofstream(path, std::ios::app) << ":2}\n";
  EXPECT_THAT(reader.next(), SizeIs(1));
}

TEST(TrainingLog, NumbersThatAreNotFiniteAreSpelledOut) {
  const std::string path = fresh_path("stratagem_log_nan");
  LogWriter(path).write({{"loss", std::numeric_limits<double>::quiet_NaN()},
                         {"norms", {1.0, -std::numeric_limits<double>::infinity()}}});
  const ordered_json line = LogReader(path).next().at(0);
  EXPECT_EQ(line.at("loss"), "nan");
  EXPECT_EQ(line.at("norms"), (ordered_json{1.0, "-inf"}));
}

TEST(TrainingLog, WhatIsNoJsonIsNamed) {
  const std::string path = fresh_path("stratagem_log_broken");
  std::ofstream(path) << "{\n";
  try {
    LogReader(path).next();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path + ": the line that ends at byte 2 is no JSON"));
  }
}

TEST(TrainingLog, AFolderThatIsNotThereIsAnErrorAndNoPathIsNoLog) {
  EXPECT_THROW(LogWriter("no/such/folder/log"), std::system_error);
  LogWriter("").write({{"event", "step"}});
}

}  // namespace
}  // namespace stratagem::training
