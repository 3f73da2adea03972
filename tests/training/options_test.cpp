#include "training/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stratagem::training::options_test {
namespace {

using testing::HasSubstr;

TEST(TrainingOptions, LengthIsThatOfTheEpochsOrOfTheLimit) {
  const EpochShape shape{.samples = 100, .batch = 30, .replicas = 1, .tail = Tail::exact};
  EXPECT_EQ(steps_of({.epochs = 3}, shape), 12);
  EXPECT_EQ(steps_of({.epochs = 3, .max_steps = 5}, shape), 5);
  EXPECT_EQ(steps_of({.epochs = 1, .max_steps = 5}, shape), 4);
}

TEST(TrainingOptions, TheScheduleLastsAsLongAsTheTraining) {
  TrainingOptions options;
  options.learning_rate_schedule = "linear";
  EXPECT_DOUBLE_EQ(learning_rate(schedule_of(options, 1, 10), 5), 0.5);
  options.schedule_steps = 20;
  options.final_learning_rate = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(schedule_of(options, 1, 10), 10), 0.75);
}

TEST(TrainingOptions, UnknownChoicesNameTheNearest) {
  try {
    tail_of("padd");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("--tail: unknown choice \"padd\": did you mean \"pad\"?"));
  }
  EXPECT_THROW(decay_of("cosin"), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::training::options_test
