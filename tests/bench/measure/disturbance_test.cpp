// Launches beside which something else happened.
#include "bench/measure/disturbance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/bench/fake_workers.h"

namespace stratagem::bench::disturbance_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Disturbance, IsACanaryThatTakesLonger) {
  EXPECT_EQ(disturbance_of(canary(20, 20.9), 20), "");
  EXPECT_THAT(disturbance_of(canary(20, 22), 20), HasSubstr("canary took 10% longer"));
  EXPECT_THAT(disturbance_of(canary(22, 20), 20), HasSubstr("canary took 10% longer"));
  EXPECT_EQ(disturbance_of({}, 0), "") << "there was none";
}

TEST(Disturbance, IsWhatOtherProgramsUse) {
  reports::Conditions conditions = canary(20, 20);
  conditions.other_processes_cores = 1000;
  EXPECT_EQ(disturbance_of(conditions, 20), "other programs used 1000.00 cores");
  conditions.other_processes_cores = 0.01;
  EXPECT_EQ(disturbance_of(conditions, 20), "");
}

TEST(Disturbance, IsWhatOtherProgramsHaveOfTheRowsOwnCores) {
  reports::Conditions conditions = canary(20, 20);
  conditions.own_cores = reports::OwnCores{.cores = {2, 3}, .seconds = 10, .others_s = 4};
  EXPECT_EQ(disturbance_of(conditions, 20), "other programs had 4.00 of the 20.00 s of its cores");
  conditions.own_cores->others_s = 1.5;
  EXPECT_EQ(disturbance_of(conditions, 20), "") << "5% are 1 s, and ticks count 0.67 s wrong";
  conditions.own_cores = reports::OwnCores{.cores = {2}, .seconds = 0.02, .others_s = 0.02};
  EXPECT_EQ(disturbance_of(conditions, 20), "") << "two ticks tell nothing";
}

TEST(Disturbance, CanariesAreComparedOnTheSameDevices) {
  Config two;
  two.strategy = "test_pieces";
  Config one = two;
  one.devices = 1;
  Config of_four_cores = one;
  of_four_cores.cores_per_device = 4;
  Config another_split = one;
  another_split.split_size = 1;
  EXPECT_NE(canary_devices(one), canary_devices(two));
  EXPECT_NE(canary_devices(one), canary_devices(of_four_cores));
  EXPECT_EQ(canary_devices(one), canary_devices(another_split));
  EXPECT_EQ(canary_devices(of_four_cores), "1 x cpu of 4 cores");
  Config gpu = one;
  gpu.device = "cuda";
  EXPECT_EQ(canary_devices(gpu), "1 x cuda");
}

/// Launches whose canaries take, after them, what a list says.
class DisturbedLaunchesTest : public MeasureTest {
 protected:
  void canaries_after(std::vector<double> milliseconds) {
    workers_.on<MeasureJob>([milliseconds, next = std::size_t{0}](const MeasureJob&) mutable {
      const double own = milliseconds[std::min(next++, milliseconds.size() - 1)];
      return answered(MeasureResult{.repetitions = {FakeWorkers::repetition(own)}},
                      canary(20, own));
    });
  }

  std::vector<int> disturbed(const Measurement& measured) const {
    std::vector<int> indices;
    for (const reports::Repetition& launch : measured.results.rows.front().repetitions) {
      if (std::ranges::count(launch.marks, "disturbed") > 0) indices.push_back(launch.index);
    }
    return indices;
  }

  static Config rounds(std::int64_t count) {
    Config config = row(4);
    config.repetitions = count;
    return config;
  }
};

TEST_F(DisturbedLaunchesTest, AreMadeOnceMoreAndKept) {
  canaries_after({20, 24, 20, 20});
  const Measurement measured = measure_rows({rounds(3)});
  EXPECT_THAT(measured.results.rows.front().repetitions, SizeIs(4));
  EXPECT_EQ(measured.planned_launches, 4u);
  EXPECT_EQ(measured.finished_launches, 4u);
  EXPECT_THAT(disturbed(measured), ElementsAre(1));
  EXPECT_EQ(measured.results.rows.front().repetitions[3].index, 3);
  EXPECT_THAT(notes_.lines,
              Contains(AllOf(HasSubstr("launch 2 was disturbed"), HasSubstr("20% longer"))));
}

TEST_F(DisturbedLaunchesTest, BringFurtherRoundsOfAllRows) {
  workers_.on<MeasureJob>([next = std::size_t{0}](const MeasureJob& job) mutable {
    const bool slow = job.config.split_size == 4 && next++ < 2;
    return answered(MeasureResult{.repetitions = {FakeWorkers::repetition(1)}},
                    canary(20, slow ? 24 : 20));
  });
  Config calm = rounds(3);
  calm.split_size = 8;
  const Measurement measured = measure_rows({rounds(3), calm});
  EXPECT_THAT(disturbed(measured), ElementsAre(0, 1));
  for (const reports::Row& row : measured.results.rows) {
    ASSERT_THAT(row.repetitions, SizeIs(5));
    for (int index = 0; index < 5; ++index) {
      EXPECT_EQ(row.repetitions[static_cast<std::size_t>(index)].index, index);
    }
  }
  const auto splits = workers_.measured_splits();
  EXPECT_THAT(std::vector(splits.end() - 4, splits.end() - 2), testing::UnorderedElementsAre(4, 8));
  EXPECT_EQ(measured.planned_launches, 10u);
}

TEST_F(DisturbedLaunchesTest, AreNotMadeAThirdTime) {
  canaries_after({20, 24, 20, 24});
  const Measurement measured = measure_rows({rounds(3)});
  EXPECT_THAT(measured.results.rows.front().repetitions, SizeIs(4));
  EXPECT_THAT(disturbed(measured), ElementsAre(1, 3));
}

// One launch that happens to be fast makes no others slow.
TEST_F(DisturbedLaunchesTest, AreThoseWhoseCanaryTakesLongerThanTheRunsMedian) {
  workers_.on<MeasureJob>([next = std::size_t{0}](const MeasureJob&) mutable {
    const double own = std::array{24.0, 22.0, 18.0, 22.5, 24.0, 22.0, 22.0}.at(next++);
    return answered(MeasureResult{.repetitions = {FakeWorkers::repetition(own)}}, canary(own, own));
  });
  EXPECT_THAT(disturbed(measure_rows({rounds(5)})), ElementsAre(0, 4));
}

TEST_F(DisturbedLaunchesTest, HaveTheirPlaceAmongAllLaunches) {
  canaries_after({20, 24, 20, 20});
  const Measurement measured = measure_rows({rounds(3)});
  std::vector<std::int64_t> places;
  for (const auto& launch : measured.results.rows.front().repetitions) {
    places.push_back(launch.conditions.place);
    EXPECT_NE(launch.conditions.started, "");
  }
  EXPECT_THAT(places, ElementsAre(1, 2, 3, 4));
}

TEST_F(DisturbedLaunchesTest, AreLeftAloneWhenAsked) {
  canaries_after({20, 24, 20});
  Config config = rounds(3);
  config.repeat_disturbed = false;
  const Measurement measured = measure_rows({config});
  EXPECT_THAT(measured.results.rows.front().repetitions, SizeIs(3));
  EXPECT_THAT(disturbed(measured), ElementsAre(1));
}

TEST_F(DisturbedLaunchesTest, OfATutorialAreOneLaunch) {
  Config config = rounds(2);
  config.protocol = "tutorial";
  workers_.on<MeasureJob>([](const MeasureJob&) {
    reports::Conditions busy = canary(20, 20);
    busy.other_processes_cores = 1000;
    return answered(
        MeasureResult{.repetitions = {FakeWorkers::repetition(1), FakeWorkers::repetition(2)}},
        busy);
  });
  const Measurement measured = measure_rows({config});
  EXPECT_EQ(workers_.count<MeasureJob>(), 2u);
  EXPECT_THAT(disturbed(measured), ElementsAre(0, 1, 2, 3));
}

TEST_F(DisturbedLaunchesTest, AreNoneWhereTwoRunsTakeTurns) {
  canaries_after({20, 24, 20});
  options_.turns = "socket";
  const Measurement measured = measure_rows({rounds(3)});
  EXPECT_THAT(disturbed(measured), IsEmpty());
  EXPECT_THAT(measured.results.rows.front().repetitions, SizeIs(3));
}

TEST_F(DisturbedLaunchesTest, AreKnownAfterAnInterruptToo) {
  canaries_after({20, 24});
  options_.resume = true;
  workers_.on<MeasureJob>([next = 0](const MeasureJob&) mutable -> FakeWorkers::Reply {
    if (next == 2)
      return LaunchResult{.status = LaunchStatus::interrupted, .result = {}, .error = {}};
    return answered(MeasureResult{.repetitions = {FakeWorkers::repetition(1)}},
                    canary(20, next++ == 0 ? 20 : 24));
  });
  EXPECT_THAT(disturbed(measure_rows({rounds(3)})), ElementsAre(1));
  canaries_after({20});
  const Measurement resumed = measure_rows({rounds(3)});
  EXPECT_THAT(disturbed(resumed), ElementsAre(1));
  EXPECT_THAT(resumed.results.rows.front().repetitions, SizeIs(4));
}

}  // namespace
}  // namespace stratagem::bench::disturbance_test
