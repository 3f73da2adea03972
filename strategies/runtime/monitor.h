// Monitor: the one lock on which the devices of a process meet.
//
// Events complete under it, and it keeps the first failure: a device that fails stops its peers
// before their next action, and the first error is the one that is shown. One lock for a process
// is enough: a step has hundreds of actions, not millions.
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

/// What one device is doing. Read and written under the monitor's lock.
struct Activity {
  std::string device;
  std::string label;  // empty: idle
  std::chrono::steady_clock::time_point since{};
  bool waiting = false;  // for another device's event
  bool overran = false;  // longer than somebody's limit
};

class Monitor {
 public:
  using Clock = std::chrono::steady_clock;
  /// Told of the group's failure when a work item overran, before anyone else is. The item still
  /// runs, so what it works on can never be freed: it may end the process.
  using OverrunHandler = std::function<void(const std::exception_ptr& failure)>;

  explicit Monitor(OverrunHandler on_overrun = {}) : on_overrun_(std::move(on_overrun)) {}

  /// Runs `change` under the lock and wakes the waiters that are ready then.
  void update(const std::function<void()>& change);

  /// Waits until `ready` holds or a failure is recorded. False: it failed meanwhile. `ready` is
  /// asked under the lock, by this thread and by those that update.
  bool wait(const std::function<bool()>& ready);

  /// As wait, but gives up at `deadline`. True: `ready` holds or a failure is recorded.
  bool wait_until(const std::function<bool()>& ready, Clock::time_point deadline);

  /// Keeps the first failure only, and wakes every waiter.
  void fail(std::exception_ptr error);

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// A failure, unless there was one, of which the handler is told.
  void fail_by_overrun(std::exception_ptr error);

  /// Throws the first failure, if there is one.
  void rethrow_if_failed();

  std::shared_ptr<Activity> add_activity(std::string device);

  /// One line on the work item that has taken longer than `limit`, empty if none has. A device
  /// that only waits for another is named when no device of the group has begun anything for twice
  /// as long: while one gets on, a wait may be as long as many of its actions.
  std::string overrun(std::chrono::milliseconds limit);

 private:
  /// A thread that waits. It is woken when it can go on: a thread that waits for a step's end would
  /// otherwise be woken by each of its actions.
  struct Waiter {
    explicit Waiter(const std::function<bool()>& until) : ready(until) {}
    const std::function<bool()>& ready;  // valid while it waits
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
