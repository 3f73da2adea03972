#include "training/best_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace stratagem::training::best_evaluation_test {
namespace {

TEST(BestEvaluation, IsTheSmallestLossOrTheLargestAccuracy) {
  BestEvaluation loss;
  EXPECT_FALSE(loss.exists());
  EXPECT_TRUE(loss.count("loss", 2.0, 0));
  EXPECT_FALSE(loss.count("loss", 2.0, 10));
  EXPECT_FALSE(loss.count("loss", NAN, 20));
  EXPECT_EQ(loss.without_improvement, 2);
  EXPECT_TRUE(loss.count("loss", 1.5, 30));
  EXPECT_EQ(loss, (BestEvaluation{.monitor = "loss", .value = 1.5, .step = 30, .last_step = 30}));
  BestEvaluation accuracy;
  EXPECT_TRUE(accuracy.count("accuracy", 0, 1));
  EXPECT_FALSE(accuracy.count("accuracy", 0, 2));
  EXPECT_TRUE(accuracy.count("accuracy", 0.5, 3));
}

TEST(BestEvaluation, CountsEachStepOnce) {
  BestEvaluation best;
  best.count("loss", 1, 5);
  best.count("loss", 2, 10);
  const BestEvaluation before = best;
  EXPECT_FALSE(best.count("loss", 2, 10));
  EXPECT_EQ(best, before);
}

TEST(BestEvaluation, OfNoNumberIsNone) {
  BestEvaluation best;
  EXPECT_FALSE(best.count("loss", NAN, 5));
  EXPECT_FALSE(best.exists());
  EXPECT_TRUE(best.count("loss", INFINITY, 10));
}

TEST(BestEvaluation, BeginsAnewWithAnotherMonitor) {
  BestEvaluation best;
  best.count("loss", 0.1, 5);
  EXPECT_TRUE(best.count("accuracy", 0.05, 5));
  EXPECT_EQ(best.step, 5);
}

}  // namespace
}  // namespace stratagem::training::best_evaluation_test
