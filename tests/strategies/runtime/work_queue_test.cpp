#include "strategies/runtime/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "tests/strategies/cpu_devices.h"

namespace stratagem::runtime::work_queue_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What a drain throws; empty when it returns.
template <class Error = std::exception>
std::string failure_of(WorkQueue& queue, std::chrono::milliseconds limit = ample) {
  try {
    queue.drain(limit);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

WorkQueue::Options named(std::string name) {
  return {.name = std::move(name), .on_start = {}, .activity = nullptr, .progress_slot = 0};
}

TEST(WorkQueue, RunsInTheOrderPushedAndDrainWaitsForAll) {
  std::vector<int> order;
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  for (int i = 0; i < 100; ++i) queue.push("work", [&, i] { order.push_back(i); });
  queue.drain(ample);
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WorkQueue, PushReturnsBeforeTheWorkRuns) {
  std::atomic<bool> may_go{false};
  std::atomic<bool> ran{false};
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  queue.push("gate", [&] {
    while (!may_go) std::this_thread::yield();
  });
  queue.push("work", [&] { ran = true; });
  EXPECT_FALSE(ran);
  may_go = true;
  queue.drain(ample);
  EXPECT_TRUE(ran);
}

TEST(WorkQueue, StartsWithOnStartOnItsOwnThread) {
  std::thread::id start;
  std::thread::id work;
  auto options = named("cpu:0");
  options.on_start = [&] { start = std::this_thread::get_id(); };
  WorkQueue queue(std::make_shared<Monitor>(), options);
  queue.push("work", [&] { work = std::this_thread::get_id(); });
  queue.drain(ample);
  EXPECT_EQ(start, work);
  EXPECT_NE(work, std::this_thread::get_id());
}

TEST(WorkQueue, AFailedStartIsTheFailure) {
  auto options = named("cpu:3");
  options.on_start = [] { throw std::runtime_error("cannot pin"); };
  WorkQueue queue(std::make_shared<Monitor>(), options);
  queue.push("work", [] {});
  EXPECT_EQ(failure_of(queue), "cpu:3, action start: cannot pin");
}

TEST(WorkQueue, NamesQueueAndItemOfAFailureInOneLine) {
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:1"));
  queue.push("1B0", [] { throw std::runtime_error("shapes differ\nframe 1\nframe 2"); });
  EXPECT_EQ(failure_of(queue), "cpu:1, action 1B0: shapes differ");
}

TEST(WorkQueue, KeepsTheFirstFailureAndSkipsWhatComesAfter) {
  std::atomic<bool> ran{false};
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  queue.push("first", [] { throw std::runtime_error("one"); });
  queue.push("second", [] { throw std::runtime_error("two"); });
  queue.push("third", [&] { ran = true; });
  EXPECT_EQ(failure_of(queue), "cpu:0, action first: one");
  EXPECT_EQ(failure_of(queue), "cpu:0, action first: one") << "every later drain says the same";
  EXPECT_FALSE(ran);
}

TEST(WorkQueue, AFailureStopsItsPeers) {
  const auto monitor = std::make_shared<Monitor>();
  WorkQueue failing(monitor, named("cpu:0"));
  WorkQueue peer(monitor, named("cpu:1"));
  failing.push("0F0", [] { throw std::runtime_error("no"); });
  EXPECT_EQ(failure_of(failing), "cpu:0, action 0F0: no");
  std::atomic<bool> ran{false};
  peer.push("1F0", [&] { ran = true; });
  EXPECT_EQ(failure_of(peer), "cpu:0, action 0F0: no");
  EXPECT_FALSE(ran);
}

TEST(WorkQueue, WhatIsNotAnExceptionIsAFailureToo) {
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  queue.push("odd", [] { throw 7; });
  EXPECT_THROW(queue.drain(ample), int);
}

TEST(WorkQueue, AnOverrunIsATimeoutThatNamesTheItem) {
  HeldWork held;
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:2"));
  queue.push("2F0", [&] { held(); });
  EXPECT_EQ(failure_of<DeviceTimeout>(queue, std::chrono::milliseconds(50)),
            "cpu:2 has been in 2F0 for more than 0.05 s (--timeout)");
  held.release();
}

TEST(WorkQueue, ALongQueueOfShortItemsIsNoOverrun) {
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  for (int i = 0; i < 12; ++i) queue.push("short", [] { sleep_ms(30); });
  EXPECT_EQ(failure_of(queue, std::chrono::milliseconds(300)), "");
}

TEST(WorkQueue, LeavesWhatIsStillQueuedAtItsEnd) {
  std::atomic<int> ran{0};
  {
    std::atomic<bool> started{false};
    WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
    queue.push("running", [&] {
      started = true;
      sleep_ms(50);
      ++ran;
    });
    while (!started) std::this_thread::yield();
    queue.push("never", [&] { ran += 100; });
  }
  EXPECT_EQ(ran, 1);
}

TEST(WorkQueue, AFailureIsToldWhenTheItemThatRanMeanwhileHasEnded) {
  const auto monitor = std::make_shared<Monitor>();
  std::atomic<bool> ended{false};
  std::atomic<bool> inside{false};
  WorkQueue busy(monitor, named("cpu:0"));
  WorkQueue failing(monitor, named("cpu:1"));
  busy.push("0F0", [&] {
    inside = true;
    sleep_ms(100);
    ended = true;
  });
  failing.push("1F0", [&] {
    while (!inside) std::this_thread::yield();
    throw std::runtime_error("no");
  });
  EXPECT_EQ(failure_of(busy), "cpu:1, action 1F0: no");
  EXPECT_TRUE(ended);
}

TEST(WorkQueue, DroppedWorkReleasesWhoWaitsForIt) {
  const auto monitor = std::make_shared<Monitor>();
  std::atomic<bool> released{false};
  WorkQueue waiting(monitor, named("cpu:1"));
  bool never = false;
  {
    std::atomic<int> started{0};
    WorkQueue dropped(monitor, named("cpu:0"));
    dropped.push("0F0", [&] {
      ++started;
      while (started < 2) std::this_thread::yield();
      sleep_ms(50);
    });
    dropped.push("0F1", [&] { never = true; });
    waiting.enqueue_wait("a wait", [&] {
      ++started;
      monitor->wait([&] { return never; });
      released = true;
    });
    while (started < 2) std::this_thread::yield();
  }
  EXPECT_EQ(failure_of(waiting), "cpu:0 was closed with unfinished work");
  EXPECT_TRUE(released);
}

TEST(WorkQueue, AnOverrunStopsThePeers) {
  HeldWork held;
  const auto monitor = std::make_shared<Monitor>();
  std::atomic<bool> ran{false};
  WorkQueue slow(monitor, named("cpu:0"));
  WorkQueue peer(monitor, named("cpu:1"));
  slow.push("0F0", [&] { held(); });
  const std::string expected = "cpu:0 has been in 0F0 for more than 0.1 s (--timeout)";
  EXPECT_EQ(failure_of<DeviceTimeout>(slow, std::chrono::milliseconds(100)), expected);
  peer.push("1F0", [&] { ran = true; });
  EXPECT_EQ(failure_of<DeviceTimeout>(peer), expected);
  EXPECT_FALSE(ran);
  held.release();
}

// Whoever is thrown at frees what the item still works on.
TEST(WorkQueue, AnOverrunIsToldToTheHandlerBeforeItIsThrown) {
  HeldWork held;
  std::atomic<bool> ended{false};
  std::string told;
  const auto monitor = std::make_shared<Monitor>([&](const std::exception_ptr& failure) {
    EXPECT_FALSE(ended);
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      told = error.what();
    }
  });
  WorkQueue queue(monitor, named("cpu:0"));
  queue.push("0F0", [&] {
    held();
    ended = true;
  });
  EXPECT_THROW(queue.drain(std::chrono::milliseconds(100)), DeviceTimeout);
  EXPECT_EQ(told, "cpu:0 has been in 0F0 for more than 0.1 s (--timeout)");
  held.release();
}

TEST(WorkQueue, OfAnOverrunAfterAFailureTheHandlerIsToldTheFailure) {
  HeldWork held;
  std::string told;
  const auto monitor = std::make_shared<Monitor>([&](const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      told = error.what();
    }
  });
  WorkQueue busy(monitor, named("cpu:0"));
  std::atomic<bool> inside{false};
  busy.push("0F0", [&] {
    inside = true;
    held();
  });
  while (!inside) std::this_thread::yield();
  monitor->fail(std::make_exception_ptr(std::runtime_error("the first")));
  EXPECT_EQ(failure_of(busy, std::chrono::milliseconds(100)), "the first");
  EXPECT_EQ(told, "the first");
  held.release();
}

TEST(WorkQueue, ReleasesWhatAnItemHoldsBeforeItCountsAsDone) {
  WorkQueue queue(std::make_shared<Monitor>(), named("cpu:0"));
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  queue.push("holds", [held = std::move(held)] {});
  queue.drain(ample);
  EXPECT_TRUE(watch.expired());
}

TEST(WorkQueue, ShowsTheCurrentItemOnThePage) {
  ProgressPage page(-1, 2);
  auto options = named("cpu:1");
  options.activity = &page;
  options.progress_slot = 1;
  std::string seen;
  WorkQueue queue(std::make_shared<Monitor>(), options);
  queue.push("1F0", [&] { seen = page.read(1); });
  queue.push({}, [] {});
  queue.drain(ample);
  EXPECT_EQ(seen, "1F0");
  EXPECT_EQ(page.read(1), "1F0") << "an empty label is not shown";
  EXPECT_EQ(page.read(0), "");
}

// Not by each update: a thread that waits for a step's end sleeps through its actions.
TEST(Monitor, WakesThoseThatAreReadyAlone) {
  Monitor monitor;
  int done = 0;
  std::atomic<int> asked = 0;
  std::thread last([&] {
    monitor.wait([&] {
      ++asked;
      return done == 3;
    });
  });
  std::thread first([&] { monitor.wait([&] { return done >= 1; }); });
  while (asked == 0) std::this_thread::yield();
  monitor.update([&] { ++done; });
  first.join();
  EXPECT_TRUE(monitor.wait_until([&] { return done == 1; }, Monitor::Clock::now()));
  EXPECT_FALSE(monitor.wait_until([&] { return done == 2; },
                                  Monitor::Clock::now() + std::chrono::milliseconds(5)));
  monitor.update([&] { done = 3; });
  last.join();
}

TEST(Monitor, WaitEndsWhenTheConditionHoldsOrTheGroupFailed) {
  Monitor monitor;
  bool ready = false;
  std::thread other([&] { monitor.update([&] { ready = true; }); });
  EXPECT_TRUE(monitor.wait([&] { return ready; }));
  other.join();
  EXPECT_FALSE(monitor.failed());
  monitor.rethrow_if_failed();

  std::thread failing([&] { monitor.fail(std::make_exception_ptr(std::runtime_error("first"))); });
  EXPECT_FALSE(monitor.wait([] { return false; }));
  failing.join();
  monitor.fail(std::make_exception_ptr(std::runtime_error("second")));
  try {
    monitor.rethrow_if_failed();
    FAIL() << "no failure";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

TEST(Monitor, WaitUntilGivesUpAtItsDeadline) {
  Monitor monitor;
  EXPECT_FALSE(monitor.wait_until([] { return false; },
                                  Monitor::Clock::now() + std::chrono::milliseconds(20)));
  EXPECT_TRUE(monitor.wait_until([] { return true; }, Monitor::Clock::now()));
}

TEST(Monitor, OverrunNamesTheFirstThatTakesTooLong) {
  Monitor monitor;
  const auto idle = monitor.add_activity("cpu:0");
  const auto busy = monitor.add_activity("cpu:1");
  const std::chrono::milliseconds limit(1000);
  monitor.update([&] {
    idle->since = Monitor::Clock::now() - std::chrono::hours(1);  // long ago, but nothing runs
    busy->label = "1F0";
    busy->since = Monitor::Clock::now() - std::chrono::milliseconds(500);
  });
  EXPECT_EQ(monitor.overrun(limit), "");
  monitor.update([&] { busy->since = Monitor::Clock::now() - std::chrono::milliseconds(1500); });
  EXPECT_EQ(monitor.overrun(limit), "cpu:1 has been in 1F0 for more than 1 s (--timeout)");
}

TEST(Monitor, ADeviceThatOnlyWaitsIsNotToBlame) {
  Monitor monitor;
  const auto waiting = monitor.add_activity("cpu:0");
  const auto busy = monitor.add_activity("cpu:1");
  const std::chrono::milliseconds limit(1000);
  const auto ago = [](int milliseconds) {
    return Monitor::Clock::now() - std::chrono::milliseconds(milliseconds);
  };
  monitor.update([&] {
    *waiting = {.device = "cpu:0", .label = "a wait", .since = ago(1900), .waiting = true};
    *busy = {.device = "cpu:1", .label = "1B0", .since = ago(1100), .waiting = false};
  });
  EXPECT_EQ(monitor.overrun(limit), "cpu:1 has been in 1B0 for more than 1 s (--timeout)");
  // As long as another device gets on with its work, a wait may take many actions' time.
  monitor.update([&] {
    waiting->since = ago(9000);
    busy->since = ago(100);
  });
  EXPECT_EQ(monitor.overrun(limit), "");
  // When all of them wait, nobody will ever come.
  monitor.update(
      [&] { *busy = {.device = "cpu:1", .label = "a wait", .since = ago(2500), .waiting = true}; });
  EXPECT_EQ(monitor.overrun(limit), "cpu:0 has been in a wait for more than 2 s (--timeout)");
}

}  // namespace
}  // namespace stratagem::runtime::work_queue_test
