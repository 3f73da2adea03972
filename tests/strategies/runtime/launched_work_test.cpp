#include "strategies/runtime/launched_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/strategies/cpu_devices.h"

namespace stratagem::runtime::launched_work_test {
namespace {

using ::testing::HasSubstr;

/// In place of a GPU's: complete when it is told to be.
class SwitchedEvent final : public Event {
 public:
  bool complete() const override { return complete_; }
  std::chrono::steady_clock::time_point time() const override { return {}; }
  void set() { complete_ = true; }

 private:
  std::atomic<bool> complete_{false};
};

/// As a GPU whose kernels have gone wrong.
class BrokenEvent final : public Event {
 public:
  bool complete() const override { throw std::runtime_error("CUDA error: an illegal address\nat"); }
  std::chrono::steady_clock::time_point time() const override { return {}; }
};

bool never() { return false; }

/// What waiting for what never ends throws; empty when it returns.
template <class Error = std::exception>
std::string failure_of(LaunchedWork& work, std::chrono::milliseconds limit = ample) {
  try {
    work.wait(never, limit);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(LaunchedWork, WaitsUntilItHasEnded) {
  LaunchedWork work(std::make_shared<Monitor>(), "cuda:0");
  const auto event = std::make_shared<SwitchedEvent>();
  work.add(Stream::compute, "0F0", event);
  std::thread kernel([&] {
    sleep_ms(20);
    event->set();
  });
  work.wait([&] { return event->complete(); }, ample);
  EXPECT_TRUE(event->complete());
  kernel.join();
}

TEST(LaunchedWork, TheLimitIsOfOnePiece) {
  LaunchedWork work(std::make_shared<Monitor>(), "cuda:0");
  std::vector<std::shared_ptr<SwitchedEvent>> events;
  for (int i = 0; i < 12; ++i) {
    events.push_back(std::make_shared<SwitchedEvent>());
    work.add(Stream::compute, "short", events.back());
  }
  std::thread kernels([&] {
    for (const auto& event : events) {
      sleep_ms(30);
      event->set();
    }
  });
  EXPECT_NO_THROW(
      work.wait([&] { return events.back()->complete(); }, std::chrono::milliseconds(300)));
  kernels.join();
}

TEST(LaunchedWork, AnOverrunNamesDeviceAndWorkAndIsTheGroupsFailure) {
  const auto monitor = std::make_shared<Monitor>();
  LaunchedWork hung(monitor, "cuda:0");
  LaunchedWork peer(monitor, "cuda:1");
  const auto ended = std::make_shared<SwitchedEvent>();
  ended->set();
  hung.add(Stream::compute, "0F0", ended);
  hung.add(Stream::compute, "0B2", std::make_shared<SwitchedEvent>());
  hung.add(Stream::copy, "0C1", std::make_shared<SwitchedEvent>());
  const std::string expected =
      "cuda:0 has been in the kernels of 0B2 and 0C1 for more than 0.1 s (--timeout)";
  EXPECT_EQ(failure_of<DeviceTimeout>(hung, std::chrono::milliseconds(100)), expected);
  EXPECT_TRUE(monitor->failed());
  // These would take half a minute each.
  EXPECT_EQ(failure_of<DeviceTimeout>(peer), expected);
  EXPECT_EQ(failure_of<DeviceTimeout>(hung), expected);
}

TEST(LaunchedWork, AnOverrunOutsideOfActionsNamesTheDevice) {
  LaunchedWork work(std::make_shared<Monitor>(), "cuda:3");
  EXPECT_EQ(failure_of<DeviceTimeout>(work, std::chrono::milliseconds(20)),
            "cuda:3 has been in its kernels for more than 0.02 s (--timeout)");
}

TEST(LaunchedWork, AnErrorOfAKernelIsTheGroupsFailureInOneLine) {
  const auto monitor = std::make_shared<Monitor>();
  LaunchedWork work(monitor, "cuda:1");
  work.add(Stream::compute, "0F0", std::make_shared<BrokenEvent>());
  EXPECT_EQ(failure_of(work), "cuda:1: CUDA error: an illegal address");
  EXPECT_TRUE(monitor->failed());
}

TEST(LaunchedWork, AFailureOfTheGroupEndsAWait) {
  const auto monitor = std::make_shared<Monitor>();
  LaunchedWork work(monitor, "cuda:0");
  std::thread failing([&] {
    sleep_ms(20);
    monitor->fail(std::make_exception_ptr(std::runtime_error("cpu:1, action 1F0: no")));
  });
  EXPECT_THAT(failure_of(work), HasSubstr("action 1F0: no"));
  failing.join();
}

}  // namespace
}  // namespace stratagem::runtime::launched_work_test
