#include "models/loss_scale.h"

#include <gtest/gtest.h>

namespace stratagem::models {
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

TEST(LossScale, StaysWhereItIsANumber) {
  LossScale scale(128, /*dynamic=*/false);
  scale.note_step(false);
  EXPECT_EQ(scale.value(), 128);
  EXPECT_TRUE(scale.at_floor());
}

}  // namespace
}  // namespace stratagem::models
