#include "models/loss_scale.h"

#include <gtest/gtest.h>

namespace stratagem::models::loss_scale_test {
namespace {

TEST(LossScale, HalvesWhereGradientsAreNotFiniteAndStopsAtOne) {
  LossScale scale(4, /*dynamic=*/true);
  EXPECT_FALSE(scale.at_floor());
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 2);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 1);
  EXPECT_TRUE(scale.at_floor());
}

TEST(LossScale, DoublesAfterManyGoodStepsInARow) {
  LossScale scale(2, /*dynamic=*/true);
  for (int step = 1; step < LossScale::growth_interval; ++step) scale.note_step(true);
  EXPECT_EQ(scale.value(), 2);
  scale.note_step(true);
  EXPECT_EQ(scale.value(), 4);
  for (int step = 1; step < LossScale::growth_interval; ++step) scale.note_step(true);
  scale.note_step(false);
  scale.note_step(true);
  EXPECT_EQ(scale.value(), 2) << "the count begins anew";
}

TEST(LossScale, WithHysteresisFallsAtAnOverflowBehindOthersUntilItHasGrown) {
  LossScale scale(64, /*dynamic=*/true, /*hysteresis=*/2);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 64);
  scale.note_step(true);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 32) << "the second, though not in a row";
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 16) << "and each one after it";
  for (int step = 0; step < LossScale::growth_interval; ++step) scale.note_step(true);
  EXPECT_EQ(scale.value(), 32);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 32) << "one is free again";
}

TEST(LossScale, AtOneTheFreeOverflowsAreAnsweredAndNoOther) {
  LossScale scale(1, /*dynamic=*/true, /*hysteresis=*/2);
  EXPECT_FALSE(scale.at_floor());
  scale.note_step(false);
  EXPECT_TRUE(scale.at_floor());
}

TEST(LossScale, GoesOnFromItsState) {
  LossScale first(64, /*dynamic=*/true, /*hysteresis=*/3);
  first.note_step(false);
  for (int step = 1; step < LossScale::growth_interval; ++step) first.note_step(true);
  LossScale second(64, /*dynamic=*/true, /*hysteresis=*/3);
  second.load(first.state());
  for (const bool finite : {true, false, false, false}) {
    first.note_step(finite);
    second.note_step(finite);
    EXPECT_EQ(second.state(), first.state());
  }
  EXPECT_EQ(second.value(), 64) << "it had doubled";
}

TEST(LossScale, StaysWhereItIsANumber) {
  LossScale scale(128, /*dynamic=*/false);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 128);
  EXPECT_TRUE(scale.at_floor());
}

}  // namespace
}  // namespace stratagem::models::loss_scale_test
