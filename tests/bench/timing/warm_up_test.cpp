#include "bench/timing/warm_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace stratagem::bench::warm_up_test {
namespace {

/// Feeds the times until the warm-up ends; beyond them each step takes half of the one before.
WarmUpCriterion after(const std::vector<double>& times) {
  WarmUpCriterion end;
  double next = 0;
  for (std::size_t step = 0; step < 1000; ++step) {
    next = step < times.size() ? times[step] : next / 2;
    if (!end.should_continue(next)) break;
  }
  return end;
}

TEST(WarmUp, EndsWhenAStepIsAsLongAsTheFastestBeforeIt) {
  const WarmUpCriterion quick = after({100, 103});
  EXPECT_EQ(quick.steps(), 2);
  EXPECT_TRUE(quick.stationary());
  const WarmUpCriterion slow = after({300, 150, 120, 110, 106, 105});
  EXPECT_EQ(slow.steps(), 6) << "each but the last is more than 2% faster than all before";
  EXPECT_TRUE(slow.stationary());
}

TEST(WarmUp, GoesOnWhileStepsGetFasterByLittle) {
  std::vector<double> times = {100};
  while (times.size() < 10) times.push_back(0.96 * times.back());
  times.push_back(times.back());
  const WarmUpCriterion end = after(times);
  EXPECT_EQ(end.steps(), 11);
  EXPECT_TRUE(end.stationary());
}

TEST(WarmUp, EndsWhereStepsScatterWithoutGettingFaster) {
  const WarmUpCriterion end = after({100, 80, 95, 88, 97});
  EXPECT_EQ(end.steps(), 4) << "neither 95 nor 88 is faster than 80";
  EXPECT_TRUE(end.stationary());
}

TEST(WarmUp, OneSlowStepEndsNothing) {
  const WarmUpCriterion end = after({100, 130, 70, 60, 60});
  EXPECT_EQ(end.steps(), 5);
}

TEST(WarmUp, LongStepsHaveTheTimeToBecomeStationary) {
  const WarmUpCriterion end = after({4600, 4200, 4000, 3990});
  EXPECT_EQ(end.steps(), 4);
  EXPECT_TRUE(end.stationary());
}

TEST(WarmUp, IsBoundedInTimeAndInSteps) {
  const WarmUpCriterion long_steps = after({9000, 8000, 7000, 6000});
  EXPECT_EQ(long_steps.steps(), 3) << "24 s are enough";
  EXPECT_FALSE(long_steps.stationary());
  const WarmUpCriterion many = after({1000});
  EXPECT_EQ(many.steps(), WarmUpCriterion::most_steps);
  EXPECT_FALSE(many.stationary());
}

TEST(WarmUp, HasAtLeastTwoStepsHoweverLong) {
  const WarmUpCriterion end = after({60000, 60000});
  EXPECT_EQ(end.steps(), 2);
  EXPECT_TRUE(end.stationary());
}

}  // namespace
}  // namespace stratagem::bench::warm_up_test
