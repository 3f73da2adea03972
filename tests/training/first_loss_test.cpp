#include "training/first_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace stratagem::training::first_loss_test {
namespace {

/// Of logits of that variance, and labels at random.
double drawn_loss(int classes, int samples, double variance, std::mt19937& random) {
  std::normal_distribution<double> logit(0, std::sqrt(variance));
  std::uniform_int_distribution<std::size_t> label(0, static_cast<std::size_t>(classes) - 1);
  double sum = 0;
  std::vector<double> logits(static_cast<std::size_t>(classes));
  for (int sample = 0; sample < samples; ++sample) {
    double exponentials = 0;
    for (double& one : logits) exponentials += std::exp(one = logit(random));
    sum += std::log(exponentials) - logits[label(random)];
  }
  return sum / samples;
}

TEST(FirstLoss, ASmallBatchOfRandomLabelsMayBeFarFromThatOfAModelThatKnowsNothing) {
  const LossRange range = usual_first_loss(10, 8);
  EXPECT_LT(range.low, 1.85);
  EXPECT_GT(range.high, 2.8) << "resnet18 on 8 images";
  EXPECT_LT(range.high, std::log(1000.0)) << "a head of 1000 classes";
  EXPECT_NEAR(usual_first_loss(10, 1'000'000).low, std::log(10.0), 0.01);
  EXPECT_NEAR(usual_first_loss(10, 1'000'000).high, std::log(10.0) + 0.5, 0.01);
  EXPECT_EQ(usual_first_loss(2, 1).low, 0);
}

TEST(FirstLoss, LogitsOfUnitVarianceAreWithinAndThoseOfInputsThatAreNotScaledAreNot) {
  std::mt19937 random(7);
  int outside = 0;
  int unscaled_within = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int samples = 4 << trial % 4;
    const LossRange range = usual_first_loss(10, samples);
    const auto within = [&](double loss) { return range.low <= loss && loss <= range.high; };
    outside += within(drawn_loss(10, samples, 1, random)) ? 0 : 1;
    unscaled_within += within(drawn_loss(10, samples, 400, random)) ? 1 : 0;
  }
  EXPECT_LE(outside, 3) << "of 300";
  EXPECT_LE(unscaled_within, 3) << "of 300";
}

}  // namespace
}  // namespace stratagem::training::first_loss_test
