// Monitor: the one lock that all devices of a process share.
//
// Events complete under it, and it keeps the first failure: a device that fails stops its peers
// before their next action, and the first error is the one reported. One lock for a process is
// enough: a step has hundreds of actions, not millions.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace stratagem::runtime {

/// The present work of one device. Read and written under the monitor's lock.
struct Activity {
  std::string device;
  std::string label;  // empty: idle
  std::chrono::steady_clock::time_point since{};
  bool waiting = false;  // it waits for another device's event
  bool overran = false;  // it took longer than a waiter's limit
};

class Monitor {
 public:
  using Clock = std::chrono::steady_clock;
  /// Receives the group's failure first when a work item overruns. The item still runs and its
  /// memory can never be freed, so the handler may end the process.
  using OverrunHandler = std::function<void(const std::exception_ptr& failure)>;

  explicit Monitor(OverrunHandler on_overrun = {}) : on_overrun_(std::move(on_overrun)) {}

  /// Runs `change` under the lock and wakes the waiters that are then ready.
  void update(const std::function<void()>& change);

  /// Waits until `ready` holds or a failure is recorded. Returns false after a failure. This
  /// thread, and the threads that update, call `ready` under the lock.
  bool wait(const std::function<bool()>& ready);

  /// Waits like wait() until `deadline`. Returns whether `ready` holds or a failure is recorded.
  bool wait_until(const std::function<bool()>& ready, Clock::time_point deadline);

  /// Keeps only the first failure and wakes every waiter.
  void fail(std::exception_ptr error);

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// Records a failure unless there is one, and calls the handler.
  void fail_by_overrun(std::exception_ptr error);

  /// Throws the first failure if there is one.
  void rethrow_if_failed();

  std::shared_ptr<Activity> add_activity(std::string device);

  /// Returns one line on the work item that has taken longer than `limit`, or an empty string. A
  /// device that only waits for another is named if no device of the group has begun anything for
  /// twice that time: while one proceeds, a wait may be as long as many of its actions.
  std::string overrun(std::chrono::milliseconds limit);

 private:
  /// A waiting thread. It wakes only when it can go on: otherwise each action of a step would wake
  /// a thread that waits for the step's end.
  struct Waiter {
    explicit Waiter(const std::function<bool()>& until) : ready(until) {}
    const std::function<bool()>& ready;  // valid during the wait
    std::condition_variable woken;
  };

  bool can_go_on(const std::function<bool()>& ready) const { return failed() || ready(); }
  std::exception_ptr first_failure();

  OverrunHandler on_overrun_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Waiter>> waiters_;
  std::exception_ptr first_failure_;
  std::atomic<bool> failed_{false};
  std::vector<std::shared_ptr<Activity>> activities_;
};

}  // namespace stratagem::runtime
