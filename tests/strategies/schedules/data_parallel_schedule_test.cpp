#include "strategies/schedules/data_parallel_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/schedules/simulate.h"

namespace stratagem::schedules::data_parallel_schedule_test {
namespace {

TEST(DataParallelSchedule, FollowsItsPicture) {
  EXPECT_EQ(grid(data_parallel_schedule({.devices = 2, .replicas = 2})),
            "device 0 | 0L0 0F0 2L0 2GO 2F0 2B0 0SG 0B0 0RA 0O\n"
            "device 1 | 1P 1SC 1F0 1SG 1B0\n");
  EXPECT_EQ(grid(data_parallel_schedule(
                {.devices = 3, .replicas = 2, .output_device = 2, .scatter_from_first = false})),
            "device 0 | 0L0 0F0 0SG 0B0 0RA 0O\n"
            "device 1 | 1P 1L0 1F0 1SG 1B0\n"
            "device 2 | 2L0 2GO 2F0 2B0\n");
}

TEST(DataParallelSchedule, OneReplicaIsASingleDevice) {
  EXPECT_EQ(grid(data_parallel_schedule({.devices = 2, .replicas = 1, .output_device = 1})),
            "device 0 | 0L0 0F0 1L0 1F0 1B0 0B0 0O\n"
            "device 1 |\n");
}

TEST(DataParallelSchedule, EveryShapeIsValid) {
  for (int devices = 1; devices <= 5; ++devices) {
    for (int replicas = 1; replicas <= devices; ++replicas) {
      for (int output = 0; output < devices; ++output) {
        for (const bool first : {true, false}) {
          EXPECT_NO_THROW(data_parallel_schedule({.devices = devices,
                                                  .replicas = replicas,
                                                  .output_device = output,
                                                  .scatter_from_first = first}));
        }
      }
    }
  }
}

TEST(DataParallelSchedule, EveryRungOfTheLadderFollowsItsPicture) {
  DataParallelShape shape{.devices = 2, .replicas = 2, .loss_on_replicas = true};
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 0B0 0RA 0O\n"
            "device 1 | 1P 1SC 1F0 1B0\n");
  shape.owners = {0, 0};  // stages 0 and 1 on the first device, 2 and 3 on the second
  shape.copies_kept = true;
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 1F0 1B0 0B0 1RA 0RA 0O 1O\n"
            "device 1 | 2SC 2F0 3F0 3B0 2B0 2P 3P\n");
  shape.reduce_overlapped = true;
  shape.owners = {0, 0, 0};
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 1F0 2F0 2B0 1B0 2RA 0B0 1RA 0RA 0O 1O 2O\n"
            "device 1 | 3SC 3F0 4F0 5F0 5B0 4B0 3B0 3P 4P 5P\n");
  shape.owners = {0, 1};
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 1F0 1B0 0B0 0RA 0O 1P\n"
            "device 1 | 2SC 2F0 3F0 3B0 2B0 3RA 3O 2P 3P\n");
  shape.with_buffers = false;  // of its own segment a device then needs nothing
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 1F0 1B0 0B0 0RA 0O 1P\n"
            "device 1 | 2SC 2F0 3F0 3B0 2B0 3RA 3O 2P\n");
}

TEST(DataParallelSchedule, ADeviceWithoutSamplesUpdatesItsSegment) {
  const DataParallelShape shape{
      .devices = 2, .replicas = 1, .loss_on_replicas = true, .copies_kept = true, .owners = {0, 1}};
  EXPECT_EQ(grid(data_parallel_schedule(shape)),
            "device 0 | 0L0 0F0 1F0 1B0 0B0 0O 1P\n"
            "device 1 | 3RA 3O\n");
}

TEST(DataParallelSchedule, AnEvaluationHasForwardPassesAlone) {
  DataParallelShape shape{.devices = 2, .replicas = 2};
  EXPECT_EQ(grid(data_parallel_evaluation(shape)),
            "device 0 | 0L0 0F0 2L0 2GO 2F0\n"
            "device 1 | 1P 1SC 1F0\n");
  shape.copies_kept = true;
  shape.loss_on_replicas = true;
  EXPECT_EQ(grid(data_parallel_evaluation(shape)),
            "device 0 | 0L0 0F0\n"
            "device 1 | 1SC 1F0\n");
}

TEST(DataParallelSchedule, EveryRungIsValid) {
  for (int devices = 1; devices <= 4; ++devices) {
    for (int replicas = 1; replicas <= devices; ++replicas) {
      for (int last_owner = 0; last_owner < devices; ++last_owner) {
        for (const bool option : {true, false}) {
          for (const bool other : {true, false}) {
            EXPECT_NO_THROW(data_parallel_schedule({.devices = devices,
                                                    .replicas = replicas,
                                                    .loss_on_replicas = option,
                                                    .copies_kept = last_owner > 0 || other,
                                                    .reduce_overlapped = option != other,
                                                    .owners = {0, 0, last_owner}}));
          }
        }
      }
    }
  }
}

/// The next step's pass of a stage must not use, or change the source of, a copy on its way.
TEST(DataParallelSchedule, KeptCopiesAreWaitedForByTheNextStep) {
  const Schedule schedule = data_parallel_schedule({.devices = 2,
                                                    .replicas = 2,
                                                    .loss_on_replicas = true,
                                                    .copies_kept = true,
                                                    .owners = {0, 1}});
  using enum ActionKind;
  const auto& first = schedule.needs_before.at({forward, 0});
  EXPECT_EQ(first, (std::vector<Action>{{replicate, 0}, {replicate, 2}}));
  EXPECT_EQ(schedule.needs_before.at({forward, 2}), (std::vector<Action>{{replicate, 2}}));
  EXPECT_EQ(schedule.needs_before.at({optimizer, 3}),
            (std::vector<Action>{{replicate, 1}, {replicate, 3}}));
}

TEST(DataParallelSchedule, SharesOfTheUpdateRunAtOnce) {
  const auto step_ms = [](std::vector<int> owners) {
    const Schedule schedule = data_parallel_schedule({.devices = 2,
                                                      .replicas = 2,
                                                      .loss_on_replicas = true,
                                                      .copies_kept = true,
                                                      .with_buffers = false,
                                                      .owners = std::move(owners)});
    return simulate(schedule,
                    [](const Action& action) -> Cost {
                      return action.kind == ActionKind::optimizer ? 4.0 : 0.0;
                    })
        .step_ms;
  };
  EXPECT_DOUBLE_EQ(step_ms({0, 0}), 8);
  EXPECT_DOUBLE_EQ(step_ms({0, 1}), 4);
}

}  // namespace
}  // namespace stratagem::schedules::data_parallel_schedule_test
