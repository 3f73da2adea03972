#include "training/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
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

TEST(TrainingOptions, EpochsWithoutEndNeedALimit) {
  const EpochShape shape{.samples = 100, .batch = 30, .replicas = 1, .tail = Tail::exact};
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(steps_of({.epochs = most, .max_steps = 7}, shape), 7);
  EXPECT_THAT([&] { steps_of({.epochs = most}, shape); },
              testing::ThrowsMessage<std::invalid_argument>(HasSubstr("set --max-steps")));
}

TEST(TrainingOptions, AScheduleThatNeverChangesTheRateIsRefused) {
  const auto refused = [](const TrainingOptions& options, const char* words) {
    EXPECT_THAT([&] { schedule_of(options, 1, 10); },
                testing::ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  TrainingOptions options;
  options.learning_rate_schedule = "step";
  refused(options, "--learning-rate-schedule step: needs --schedule-steps");
  options.schedule_steps = 4;
  EXPECT_DOUBLE_EQ(learning_rate(schedule_of(options, 1, 10), 4), 0.1);
  options.warmup_steps = 4;
  refused(options, "--warmup-steps 4: the schedule \"step\" has 4 steps in all");
  options.learning_rate_schedule = "cosine";
  options.schedule_steps = 0;
  EXPECT_NO_THROW(schedule_of(options, 1, 10));
  options.warmup_steps = 10;
  refused(options, "--warmup-steps 10: the schedule \"cosine\" has 10 steps in all");
  options.learning_rate_schedule = "constant";
  EXPECT_NO_THROW(schedule_of(options, 1, 10));
}

TEST(TrainingOptions, UnknownChoicesNameTheNearest) {
  try {
    tail_of("padd");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("--tail: unknown value \"padd\": did you mean \"pad\"?"));
  }
  EXPECT_THROW(decay_of("cosin"), std::invalid_argument);
}

}  // namespace
}  // namespace stratagem::training::options_test
