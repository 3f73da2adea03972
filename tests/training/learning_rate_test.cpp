#include "training/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace stratagem::training::learning_rate_test {
namespace {

TEST(LearningRate, WarmsUpFromAPartOfTheBase) {
  const LearningRateSchedule schedule{.base = 0.4, .warm_up = 4};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1000), 0.4);
}

TEST(LearningRate, FallsToATenthAtEachStep) {
  const LearningRateSchedule schedule{.kind = DecayKind::step, .base = 1, .steps = 30};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 29), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 30), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 60), 0.01);
}

TEST(LearningRate, ComesToItsLastValueAndStaysThere) {
  for (const DecayKind kind : {DecayKind::linear, DecayKind::cosine, DecayKind::wsd}) {
    const LearningRateSchedule schedule{
        .kind = kind, .base = 1, .last = 0.2, .warm_up = 10, .steps = 110};
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 110), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 5000), 0.2);
  }
}

TEST(LearningRate, IsThatOfItsFormula) {
  LearningRateSchedule schedule{.kind = DecayKind::linear, .base = 1, .last = 0.5, .steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 40), 0.8);
  schedule.kind = DecayKind::cosine;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 25), 0.5 + 0.25 * (1 + std::cos(std::numbers::pi / 4)));
  schedule.kind = DecayKind::wsd;
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 80), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 90), 0.75);
}

}  // namespace
}  // namespace stratagem::training::learning_rate_test
