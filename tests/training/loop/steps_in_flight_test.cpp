#include "training/loop/steps_in_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>

#include "tests/strategies/cpu_devices.h"

namespace stratagem::training::steps_in_flight_test {
namespace {

class Fake final : public strategies::PendingStep {
 public:
  explicit Fake(double loss, double norm = 0, bool skipped = false)
      : loss_(loss), norm_(norm), skipped_(skipped) {}
  const schedules::Execution& execution() const override { return none_; }
  double loss() const override { return loss_; }
  double gradient_norm() const override { return norm_; }
  bool skipped() const override { return skipped_; }

 private:
  double loss_;
  double norm_;
  bool skipped_;
  schedules::Execution none_;
};

TEST(StepsInFlight, AStepIsWaitedForWhileTheNextOneRuns) {
  runtime::CpuDevices devices(2);
  std::atomic<int> may_run = 0;
  StepsInFlight steps(devices.all, runtime::ample);
  EXPECT_TRUE(steps.idle_since());
  for (int step = 0; step < 3; ++step) {
    for (const auto& device : devices.all) {
      device->enqueue(runtime::Stream::compute, "step", [&may_run, step] {
        while (may_run <= step) std::this_thread::yield();
      });
    }
    steps.add(std::make_unique<Fake>(step + 1), 10 * (step + 1));
  }
  may_run = 2;  // the third does not end
  steps.wait_until_left(1);
  EXPECT_FALSE(steps.idle_since());
  const EndedSteps first = steps.take_ended();
  EXPECT_EQ(first.own_sum, 1 * 10 + 2 * 20);
  EXPECT_EQ(first.samples, 30);
  EXPECT_EQ(first.last_batch, 20);
  const auto before = StepsInFlight::Clock::now();
  may_run = 3;
  steps.wait_until_left(0);
  ASSERT_TRUE(steps.idle_since());
  EXPECT_GE(*steps.idle_since(), before);
  EXPECT_EQ(steps.take_ended().own_sum, 3 * 30);
  EXPECT_EQ(steps.take_ended().samples, 0);
}

TEST(StepsInFlight, OfAStepThatWasSkippedTheNormMayBeInfinite) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  runtime::CpuDevices devices(1);
  StepsInFlight steps(devices.all, runtime::ample);
  steps.add(std::make_unique<Fake>(1, infinite, /*skipped=*/true), 1);
  steps.add(std::make_unique<Fake>(1, 2.0), 1);
  steps.wait_until_left(0);
  EXPECT_EQ(steps.ended().skipped, 1);
  EXPECT_FALSE(steps.take_ended().not_finite);
  EXPECT_EQ(steps.ended().skipped, 0);
  steps.add(std::make_unique<Fake>(1, 2.0), 1);
  steps.add(std::make_unique<Fake>(1, infinite), 1);
  steps.wait_until_left(0);
  EXPECT_EQ(steps.take_ended().not_finite, 1);
}

TEST(StepsInFlight, AFailureOfAnyDeviceIsThrown) {
  runtime::CpuDevices devices(2);
  StepsInFlight steps(devices.all, runtime::ample);
  devices[1].enqueue(runtime::Stream::compute, "1F0",
                     [] { throw std::runtime_error("no memory left"); });
  steps.add(std::make_unique<Fake>(1), 1);
  EXPECT_THROW(steps.wait_until_left(0), std::runtime_error);
}

}  // namespace
}  // namespace stratagem::training::steps_in_flight_test
