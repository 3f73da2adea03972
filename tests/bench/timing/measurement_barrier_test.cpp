#include "bench/timing/measurement_barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace stratagem::bench::measurement_barrier_test {
namespace {

using namespace std::chrono_literals;

TEST(MeasurementBarrier, NoneMeasuresBeforeAllAreWarmAndNoneRestsBeforeAllAreDone) {
  constexpr int loops = 3;
  const auto all = std::make_shared<MeasurementBarrier>(loops, 60s);
  std::atomic<int> warm = 0;
  std::atomic<int> done = 0;
  std::atomic<bool> early = false;
  std::vector<std::thread> threads;
  for (int loop = 0; loop < loops; ++loop) {
    threads.emplace_back([&, loop] {
      MeasurementBarrier::Participant member(all);
      std::this_thread::sleep_for(loop * 5ms);
      ++warm;
      member.warm();
      while (member.others_warm_up()) std::this_thread::yield();
      if (warm < loops) early = true;
      std::this_thread::sleep_for((loops - loop) * 5ms);
      ++done;
      member.done();
      while (member.others_measure()) std::this_thread::yield();
      if (done < loops) early = true;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(early);
}

TEST(MeasurementBarrier, WhoGoesHoldsNobodyUp) {
  const auto all = std::make_shared<MeasurementBarrier>(2, 60s);
  MeasurementBarrier::Participant stays(all);
  std::optional<MeasurementBarrier::Participant> goes(std::in_place, all);
  stays.warm();
  stays.warm();  // counts once
  stays.done();
  EXPECT_TRUE(stays.others_warm_up());
  EXPECT_TRUE(stays.others_measure());
  goes.reset();
  EXPECT_FALSE(stays.others_warm_up());
  EXPECT_FALSE(stays.others_measure());
}

TEST(MeasurementBarrier, TheLimitEndsAWait) {
  const auto all = std::make_shared<MeasurementBarrier>(2, 0ms);
  const MeasurementBarrier::Participant member(all);
  EXPECT_FALSE(member.others_warm_up());
  EXPECT_FALSE(member.others_measure());
}

}  // namespace
}  // namespace stratagem::bench::measurement_barrier_test
