// The verdict on a launch's own steps, on numbers made up for it.
#include "bench/proof/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace stratagem::bench::judge_test {
namespace {

using testing::HasSubstr;

/// Of an entry whose elements are all that.
Fingerprint of_value(double value) {
  return {.squares = value * value,
          .projected = std::vector<double>(Fingerprint::projections, value)};
}

/// An entry that begins at 1 and moves by 1 a step; float32 has an error of 1e-6 of the change.
Fingerprints after(std::int64_t steps, double error = 0) {
  const double value = 1 + static_cast<double>(steps) * (1 + error);
  return {{"weight", of_value(value)}, {"optimizer.exp_avg.weight", of_value(value)}};
}

Trajectory trajectory(double error) {
  return {.loss = {2 * (1 + error), 1, 0.5},
          .states = {{0, after(0)}, {2, after(2, error)}, {3, after(3, error)}}};
}

Reference reference() {
  return {.exact = trajectory(0),
          .rounded = trajectory(1e-6),
          .loss_tolerance = 1e-5,
          .oracle = "one device"};
}

Evidence launch(double error = 0) {
  return {.loss = {2, 1, 0.5}, .skipped = {}, .state = after(3, error)};
}

TEST(Judge, PassesWhatIsAsFarOffAsOneDevice) {
  const reports::Proof verdict = judge(launch(7e-6), reference());
  EXPECT_TRUE(verdict.passed) << verdict.message;
  EXPECT_EQ(verdict.oracle, "one device, 3 steps");
  EXPECT_EQ(verdict.message, "");
  EXPECT_NEAR(verdict.max_relative_error, 7e-6, 1e-9);
  EXPECT_NEAR(verdict.tolerance, 8e-6, 1e-9);
}

TEST(Judge, NamesTheEntryThatDiffers) {
  const reports::Proof verdict = judge(launch(9e-6), reference());
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.message,
            "optimizer.exp_avg.weight after step 2 differs from one device's by 9e-06 of its "
            "change, and 8e-06 is allowed (counted from the first warm-up step, which is 0)");
}

TEST(Judge, NamesTheFirstStepWhoseLossDiffers) {
  Evidence wrong = launch();
  wrong.loss = {2, 1.01, 0.6};
  const reports::Proof verdict = judge(wrong, reference());
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.message,
            "the loss of step 1 is 1.01, one device's is 1 (counted from the first warm-up step, "
            "which is 0)");
  EXPECT_NEAR(verdict.max_relative_error, 0.2, 1e-9);
}

TEST(Judge, KnowsTheUsualErrorOfStatisticsApartFromThatOfParameters) {
  Reference magnified = reference();
  magnified.exact.states.front().state["norm.running_mean"] = of_value(0);
  magnified.exact.states.back().state["norm.running_mean"] = of_value(1);
  for (auto& [name, fingerprint] : magnified.rounded.states.back().state) {
    fingerprint = of_value(100);  // parameters are off by many times their change
  }
  magnified.rounded.states.back().state["norm.running_mean"] = of_value(1.001);
  Evidence wrong = launch();
  wrong.state["norm.running_mean"] = of_value(1.1);
  EXPECT_THAT(judge(wrong, magnified).message, HasSubstr("norm.running_mean"));
}

TEST(Judge, AllowsOneElementOfAParameterTheOtherSign) {
  Reference adam = reference();
  Evidence flipped = launch();
  for (double& projection : flipped.state.at("weight").projected) projection += 0.5;
  EXPECT_FALSE(judge(flipped, adam).passed);
  adam.sign_flip = 0.5;
  EXPECT_TRUE(judge(flipped, adam).passed) << judge(flipped, adam).message;
}

TEST(Judge, ComparesNumbersOfStepsExactly) {
  Reference counted = reference();
  counted.roundoff = 0.01;
  Evidence counting = launch();
  for (Trajectory* each : {&counted.exact, &counted.rounded}) {
    each->states.back().state["optimizer.step.weight"] = of_value(3);
  }
  counting.state["optimizer.step.weight"] = of_value(3);
  EXPECT_TRUE(judge(counting, counted).passed);
  for (Trajectory* each : {&counted.exact, &counted.rounded}) {
    each->states.back().state["norm.num_batches_tracked"] = of_value(3);
  }
  counting.state["norm.num_batches_tracked"] = of_value(4);
  EXPECT_THAT(judge(counting, counted).message, HasSubstr("norm.num_batches_tracked"));
  counting.state["norm.num_batches_tracked"] = of_value(3);
  counting.state["optimizer.step.weight"] = of_value(2);
  EXPECT_THAT(judge(counting, counted).message, HasSubstr("optimizer.step.weight"));
}

TEST(Judge, CountsTheEntriesOfWhichItShowsSomething) {
  const reports::Proof sharp = judge(launch(), reference());
  EXPECT_EQ(sharp.entries, 2);
  EXPECT_EQ(sharp.shown, 2);
  EXPECT_TRUE(sharp.is_conclusive());
  Reference coarse = reference();
  coarse.roundoff = 0x1p-2;  // as if parameters had a digit
  const reports::Proof blind = judge(launch(), coarse);
  EXPECT_TRUE(blind.passed);
  EXPECT_EQ(blind.shown, 0);
  EXPECT_FALSE(blind.is_conclusive());
}

TEST(Judge, KnowsARowInFloat64ByItsShakenTrajectory) {
  Reference exact = reference();
  exact.rounded = {};
  exact.shaken = trajectory(1e-12);
  EXPECT_TRUE(judge(launch(1.9e-12), exact).passed);
  EXPECT_FALSE(judge(launch(2.1e-12), exact).passed);
}

TEST(Judge, ComparesTheStateAfterTheLaunchsOwnSteps) {
  Evidence shorter = launch();
  shorter.loss = {2, 1};
  EXPECT_FALSE(judge(shorter, reference()).passed);
  shorter.state = after(2);
  EXPECT_TRUE(judge(shorter, reference()).passed);
}

TEST(Judge, AsksForEveryEntry) {
  Evidence lacking = launch();
  lacking.state.erase("weight");
  EXPECT_THAT(judge(lacking, reference()).message, HasSubstr("weight is missing after step 2"));
}

TEST(Judge, AllowsTheRoundingOfWhatIsStored) {
  Reference stored = reference();
  EXPECT_FALSE(judge(launch(2e-5), stored).passed);
  stored.roundoff = 2e-6;  // of an entry of 4, in three steps, three times: 1.4e-5 of 3
  EXPECT_TRUE(judge(launch(2e-5), stored).passed);
}

TEST(Judge, AllowsWhatRectifiedUnitsMayDecide) {
  Reference rectified = reference();
  rectified.undecided = 0.01;
  EXPECT_TRUE(judge(launch(0.009), rectified).passed);
  EXPECT_FALSE(judge(launch(0.011), rectified).passed);
}

TEST(Judge, AllowsWhatTheShakenTrajectoryIsOff) {
  Reference shaken = reference();
  shaken.shaken = trajectory(1e-3);
  EXPECT_TRUE(judge(launch(1.9e-3), shaken).passed);
  EXPECT_FALSE(judge(launch(2.1e-3), shaken).passed);
  Evidence off = launch();
  off.loss[0] = 2 * (1 + 1.9e-3);
  EXPECT_TRUE(judge(off, shaken).passed);
  off.loss[0] = 2 * (1 + 2.1e-3);
  EXPECT_FALSE(judge(off, shaken).passed);
  shaken.shaken_factor = 4;
  EXPECT_TRUE(judge(off, shaken).passed);
}

TEST(Judge, AllowsARowItsCoarserRoundings) {
  Reference coarser = reference();
  coarser.coarser = 10;
  EXPECT_TRUE(judge(launch(7e-5), coarser).passed);
  EXPECT_FALSE(judge(launch(1e-4), coarser).passed);
}

TEST(Judge, SeesALossThatIsNotFinite) {
  Evidence wrong = launch();
  wrong.loss[2] = std::nan("");
  EXPECT_FALSE(judge(wrong, reference()).passed);
}

TEST(Judge, ComparesLaunchesBitForBit) {
  Evidence other = launch();
  other.loss.push_back(0.4);
  EXPECT_EQ(difference_of_launches(launch(), other), "") << "it only took a step more";
  other.loss[1] = std::nextafter(1, 2);
  EXPECT_EQ(difference_of_launches(launch(), other),
            "two launches differ: the loss of step 1 is 1 and 1.0000000000000002 (counted from the "
            "first warm-up step, which is 0)");
}

}  // namespace
}  // namespace stratagem::bench::judge_test
