#include "bench/timing/warm_up.h"

#include <gtest/gtest.h>

#include <vector>

namespace stratagem::bench {
namespace {

/// Feeds the times until the warm-up ends; beyond them the last one doubles, and never agrees.
WarmUpCriterion after(const std::vector<double>& times) {
  WarmUpCriterion end;
  double next = 0;
  for (std::size_t step = 0; step < 1000; ++step) {
    next = step < times.size() ? times[step] : 2 * next;
    if (!end.should_continue(next)) break;
  }
  return end;
}

TEST(WarmUp, EndsWhenTwoStepsInARowAgree) {
  const WarmUpCriterion quick = after({100, 103});
  EXPECT_EQ(quick.steps(), 2);
  EXPECT_TRUE(quick.stationary());
  const WarmUpCriterion slow = after({300, 150, 120, 110, 106, 90});
  EXPECT_EQ(slow.steps(), 5) << "150, 120 and 110 are more than 5% apart";
  EXPECT_TRUE(slow.stationary());
}

TEST(WarmUp, LongStepsHaveTheTimeToBecomeStationary) {
  const WarmUpCriterion end = after({4600, 4200, 4000, 3990});
  EXPECT_EQ(end.steps(), 3);
  EXPECT_TRUE(end.stationary());
}

TEST(WarmUp, IsBoundedInTimeAndInSteps) {
  const WarmUpCriterion long_steps = after({9000, 8000, 7000, 6000});
  EXPECT_EQ(long_steps.steps(), 3) << "24 s are enough";
  EXPECT_FALSE(long_steps.stationary());
  std::vector<double> times;
  for (int step = 0; step < 200; ++step) times.push_back(step % 2 == 0 ? 1.0 : 2.0);
  const WarmUpCriterion many = after(times);
  EXPECT_EQ(many.steps(), WarmUpCriterion::most_steps);
  EXPECT_FALSE(many.stationary());
}

TEST(WarmUp, HasAtLeastTwoStepsHoweverLong) {
  const WarmUpCriterion end = after({60000, 60000});
  EXPECT_EQ(end.steps(), 2);
  EXPECT_TRUE(end.stationary());
}

}  // namespace
}  // namespace stratagem::bench
