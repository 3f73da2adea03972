#include "strategies/schedules/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <stdexcept>
#include <type_traits>

#include "strategies/schedules/data_parallel_schedule.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/registry.h"
#include "tests/strategies/action_letters.h"
#include "tests/strategies/action_log.h"
#include "tests/strategies/cpu_devices.h"
#include "tests/strategies/stream_device.h"

namespace stratagem::schedules::executor_test {
namespace {

using runtime::ample;
using runtime::CpuDevices;
using runtime::DeviceTimeout;
using runtime::sleep_ms;
using runtime::StreamDevices;
using Clock = std::chrono::steady_clock;

template <class Error>
std::string failure_of(runtime::CpuDevices& devices, std::chrono::milliseconds limit) {
  try {
    runtime::synchronize_all(devices.all, limit);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// On devices with one stream, and on devices whose copies run apart.
template <class Devices>
class ExecutorOn : public ::testing::Test {
 protected:
  static void expect_order(const Schedule& schedule, const Log& log) {
    expect_in_order(schedule, log, std::is_same_v<Devices, StreamDevices>);
  }
};
using KindsOfDevices = ::testing::Types<CpuDevices, StreamDevices>;
TYPED_TEST_SUITE(ExecutorOn, KindsOfDevices);

TYPED_TEST(ExecutorOn, RunsEveryScheduleInOrder) {
  for (const std::string& name : schedule_names()) {
    for (const auto& [stages, micro_batches] :
         std::vector<std::pair<int, int>>{{1, 1}, {1, 3}, {2, 1}, {2, 4}, {3, 2}, {4, 6}}) {
      SCOPED_TRACE(name + " on " + std::to_string(stages) + " devices, " +
                   std::to_string(micro_batches) + " micro-batches");
      const Schedule schedule = make_schedule(name, stages, micro_batches);
      Log log;
      TypeParam devices(stages);
      const Execution execution =
          execute(schedule, devices.all, [&](const Action& action) { log.perform(action); });
      runtime::synchronize_all(devices.all, ample);
      this->expect_order(schedule, log);
      EXPECT_EQ(execution.size(), log.entries().size());
      for (const auto& entry : execution) {
        EXPECT_TRUE(entry.start->complete() && entry.end->complete()) << to_string(entry.action);
        EXPECT_LE(entry.start->time(), entry.end->time()) << to_string(entry.action);
      }
    }
  }
}

TEST(Executor, WaitsForASlowNeighbour) {
  // Stage 1 would overtake stage 0 if the events did not hold it.
  const Schedule schedule = make_schedule("1f1b", 3, 3);
  Log log;
  runtime::CpuDevices devices(3);
  execute(schedule, devices.all, [&](const Action& action) {
    log.perform(action, action.stage == 0 || action.kind == B ? 5 : 0);
  });
  runtime::synchronize_all(devices.all, ample);
  expect_in_order(schedule, log);
}

/// Every device runs the forward passes of its stages, then the backward passes.
Schedule over_stages(const std::vector<int>& device_of_stage) {
  Schedule compute;
  compute.name = "stages of two devices";
  compute.device_of_stage = device_of_stage;
  compute.actions.resize(2);
  const int stages = compute.stages();
  const auto actions_of = [&](int stage) -> auto& {
    return compute.actions.at(
        static_cast<std::size_t>(device_of_stage.at(static_cast<std::size_t>(stage))));
  };
  for (int stage = 0; stage < stages; ++stage) actions_of(stage).push_back({F, stage, 0});
  for (int stage = stages - 1; stage >= 0; --stage) actions_of(stage).push_back({B, stage, 0});
  return lower(compute);
}

TEST(Executor, StagesOfOneDeviceRunOnIt) {
  for (const std::vector<int>& device_of_stage :
       {std::vector{0, 1, 0, 1}, std::vector{0, 1, 1, 0}, std::vector{0, 0, 1, 1}}) {
    const Schedule schedule = over_stages(device_of_stage);
    validate(schedule);
    Log log;
    runtime::CpuDevices devices(2);
    execute(schedule, devices.all, [&](const Action& action) { log.perform(action, 1); });
    runtime::synchronize_all(devices.all, ample);
    expect_in_order(schedule, log);
  }
}

TYPED_TEST(ExecutorOn, TwoStepsBackToBack) {
  const Schedule schedule = make_schedule("gpipe", 3, 4);
  Log first;
  Log second;
  TypeParam devices(3);
  execute(schedule, devices.all, [&](const Action& action) { first.perform(action, 1); });
  execute(schedule, devices.all, [&](const Action& action) { second.perform(action); });
  runtime::synchronize_all(devices.all, ample);
  this->expect_order(schedule, first);
  this->expect_order(schedule, second);
  // A device begins the second step where it ended the first.
  std::map<std::thread::id, Clock::time_point> end_of_first;
  for (const auto& entry : first.entries()) end_of_first[entry.thread] = entry.end;
  for (const auto& entry : second.entries()) {
    EXPECT_GE(entry.start, end_of_first.at(entry.thread)) << to_string(entry.action);
  }
}

TYPED_TEST(ExecutorOn, WaitsForWhatItNeedsOfTheStepBefore) {
  for (const bool kept : {false, true}) {
    DataParallelShape shape;
    shape.devices = shape.replicas = 3;
    shape.copies_kept = kept;
    const Schedule schedule = data_parallel_schedule(shape);
    Log before;
    Log after;
    TypeParam devices(3);
    const auto slow = [](const Action& action) { return action.kind == O ? 5 : 1; };
    const Execution first = execute(
        schedule, devices.all, [&](const Action& action) { before.perform(action, slow(action)); });
    execute(
        schedule, devices.all, [&](const Action& action) { after.perform(action); }, 0, first);
    runtime::synchronize_all(devices.all, ample);
    this->expect_order(schedule, before);
    this->expect_order(schedule, after);
    std::map<Action, Clock::time_point> ends;
    for (const auto& entry : before.entries()) ends[entry.action] = entry.end;
    for (const auto& entry : after.entries()) {
      const auto needed = schedule.needs_before.find(entry.action);
      if (needed == schedule.needs_before.end()) continue;
      for (const Action& each : needed->second) {
        if (!ends.contains(each)) continue;
        EXPECT_LE(ends.at(each), entry.start)
            << to_string(entry.action) << " before the end of " << to_string(each);
      }
    }
  }
}

// Ends only because the copy does not wait: 1CF0 runs while 0F0, which it copies, waits for it.
TEST(Executor, ACopyOvertakesWhatItDoesNotNeedByTheSchedule) {
  Schedule schedule = make_schedule("gpipe", 2, 1);
  schedule.needs[{CF, 1, 0}].clear();
  std::atomic<bool> copied{false};
  StreamDevices devices(2);
  execute(schedule, devices.all, [&](const Action& action) {
    if (action == Action{CF, 1, 0}) copied = true;
    while (action == Action{F, 0, 0} && !copied) std::this_thread::yield();
  });
  runtime::synchronize_all(devices.all, ample);
}

TEST(Executor, ReturnsBeforeTheDevicesAreDone) {
  std::atomic<bool> may_go{false};
  runtime::CpuDevices devices(1);
  const auto execution = execute(make_schedule("naive", 1, 1), devices.all, [&](const Action&) {
    while (!may_go) std::this_thread::yield();
  });
  EXPECT_FALSE(execution.back().end->complete());
  may_go = true;
  runtime::synchronize_all(devices.all, ample);
  EXPECT_TRUE(execution.back().end->complete());
}

TEST(Executor, AnErrorNamesDeviceAndActionAndStopsThePeers) {
  const Schedule schedule = make_schedule("1f1b", 3, 4);
  Log log;
  runtime::CpuDevices devices(3);
  execute(schedule, devices.all, [&](const Action& action) {
    if (action == Action{F, 1, 1}) throw std::runtime_error("no memory left");
    log.perform(action);
  });
  const std::string expected = "cpu:1, action 1F1: no memory left";
  EXPECT_EQ(failure_of<std::runtime_error>(devices, ample), expected);
  EXPECT_EQ(failure_of<std::runtime_error>(devices, ample), expected) << "it stays the error";
  EXPECT_FALSE(log.contains({B, 1, 0}));
  EXPECT_FALSE(log.contains({F, 2, 1}));
  EXPECT_FALSE(log.contains({ActionKind::optimizer, 0, 0}));
}

TEST(Executor, PeersStopBeforeTheirNextAction) {
  // Device 0 is inside 0F1 when 1F0 fails: that action ends, the next does not begin.
  Log log;
  std::atomic<bool> inside{false};
  std::atomic<bool> failed{false};
  runtime::CpuDevices devices(2);
  execute(make_schedule("gpipe", 2, 4), devices.all, [&](const Action& action) {
    if (action == Action{F, 0, 1}) {
      inside = true;
      while (!failed) std::this_thread::yield();
      runtime::sleep_ms(30);
    }
    if (action == Action{F, 1, 0}) {
      while (!inside) std::this_thread::yield();
      failed = true;
      throw std::runtime_error("first");
    }
    log.perform(action);
  });
  EXPECT_EQ(failure_of<std::runtime_error>(devices, ample), "cpu:1, action 1F0: first");
  devices.all.clear();  // ends the threads
  EXPECT_TRUE(log.contains({F, 0, 1}));
  EXPECT_FALSE(log.contains({ActionKind::copy_input, 0, 2}));
  EXPECT_FALSE(log.contains({F, 0, 2}));
}

TEST(Executor, TheFirstOfSeveralErrorsIsTheOneThrown) {
  std::atomic<bool> first_threw{false};
  runtime::CpuDevices devices(2);
  execute(make_schedule("gpipe", 2, 2), devices.all, [&](const Action& action) {
    if (action == Action{F, 1, 0}) {
      first_threw = true;
      throw std::runtime_error("first");
    }
    if (action == Action{F, 0, 1}) {
      while (!first_threw) std::this_thread::yield();
      runtime::sleep_ms(100);
      throw std::runtime_error("second");
    }
  });
  EXPECT_EQ(failure_of<std::runtime_error>(devices, ample), "cpu:1, action 1F0: first");
}

TEST(Executor, AnOverrunNamesTheActionThatIsTooSlow) {
  // Device 0, the first to be synchronised, only waits for device 1's 1B0.
  runtime::HeldWork held;
  runtime::CpuDevices devices(2);
  execute(make_schedule("naive", 2, 1), devices.all, [&](const Action& action) {
    if (action == Action{B, 1, 0}) held();
  });
  EXPECT_EQ(failure_of<DeviceTimeout>(devices, std::chrono::milliseconds(200)),
            "cpu:1 has been in 1B0 for more than 0.2 s (--timeout)");
  held.release();
}

TEST(Executor, ALongWaitForWorkingPeersIsNoOverrun) {
  // Device 0 waits for ten actions of the others: more than twice the limit of one action.
  Log log;
  runtime::CpuDevices devices(6);
  const Schedule schedule = make_schedule("naive", 6, 1);
  execute(schedule, devices.all, [&](const Action& action) {
    log.perform(action, action.kind == F || action.kind == B ? 100 : 0);
  });
  EXPECT_EQ(failure_of<std::exception>(devices, std::chrono::milliseconds(450)), "");
  expect_in_order(schedule, log);
}

TEST(Executor, DevicesEndAfterAFailureWithWorkLeft) {
  for (int trial = 0; trial < 20; ++trial) {
    runtime::CpuDevices devices(3);
    for (int step = 0; step < 3; ++step) {
      execute(make_schedule("1f1b", 3, 4), devices.all, [](const Action& action) {
        if (action == Action{B, 2, 1}) throw std::runtime_error("no");
      });
    }
    if (trial % 2 == 0) {
      EXPECT_NE(failure_of<std::runtime_error>(devices, ample), "");
    }
  }
}

TEST(Executor, TheTimelineIsRelativeToItsOriginAndEndsWithIt) {
  runtime::CpuDevices devices(2);
  const auto origin = Clock::now();
  const Execution execution = execute(make_schedule("1f1b", 2, 2), devices.all,
                                      [](const Action&) { runtime::sleep_ms(2); });
  runtime::synchronize_all(devices.all, ample);
  const auto end = end_of(execution);
  EXPECT_LE(end, Clock::now());
  for (const auto& entry : execution) EXPECT_LE(entry.end->time(), end);

  const Timeline timeline = timeline_of({&execution}, origin, end);
  EXPECT_EQ(timeline.entries.size(), execution.size());
  const std::chrono::duration<double, std::milli> length = end - origin;
  EXPECT_DOUBLE_EQ(timeline.step_ms, length.count());
  for (const auto& entry : timeline.entries) {
    EXPECT_GE(entry.start_ms, 0);
    EXPECT_LE(entry.end_ms, timeline.step_ms);
    EXPECT_GE(entry.end_ms - entry.start_ms, 2) << to_string(entry.action);
  }
  for (std::size_t i = 1; i < timeline.entries.size(); ++i) {
    const auto& before = timeline.entries[i - 1];
    const auto& after = timeline.entries[i];
    EXPECT_TRUE(before.device < after.device ||
                (before.device == after.device && before.end_ms <= after.start_ms));
  }

  // An origin in the middle cuts off what lies before it.
  const auto middle = origin + (end - origin) / 2;
  for (const auto& entry : timeline_of({&execution}, middle, end).entries) {
    EXPECT_GE(entry.start_ms, 0);
  }
  EXPECT_EQ(timeline_of({&execution, &execution}, origin, end).entries.size(),
            2 * execution.size());
}

}  // namespace
}  // namespace stratagem::schedules::executor_test
