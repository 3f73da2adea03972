#include "strategies/runtime/work_queue.h"

#include <fmt/format.h>

#include <utility>

#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/device.h"
#include "strategies/runtime/first_line.h"

namespace stratagem::runtime {
namespace {
constexpr std::chrono::seconds end_of_thread_limit{5};
constexpr std::chrono::seconds end_of_stuck_thread_limit{1};

}  // namespace

WorkQueue::WorkQueue(std::shared_ptr<Monitor> monitor, Options options)
    : shared_(std::make_shared<Shared>()) {
  shared_->monitor = std::move(monitor);
  shared_->options = std::move(options);
  shared_->activity = shared_->monitor->add_activity(shared_->options.name);
  thread_ = std::thread([shared = shared_] { loop(shared); });
  if (shared_->options.on_start) push("start", shared_->options.on_start);
}

WorkQueue::~WorkQueue() {
  bool drops_work = false;
  bool stuck = false;
  shared_->monitor->update([&] {
    shared_->stopping = true;
    stuck = shared_->activity->overran;
    drops_work = !shared_->items.empty();
  });
  if (drops_work) {  // a peer that waits for it would wait forever
    shared_->monitor->fail(std::make_exception_ptr(std::runtime_error(
        fmt::format("{} was closed with unfinished work", shared_->options.name))));
  }
  bool ended = false;
  const auto deadline =
      Monitor::Clock::now() + (stuck ? end_of_stuck_thread_limit : end_of_thread_limit);
  while (!ended && Monitor::Clock::now() < deadline) {
    // wait_until also returns on a failure, which does not mean that the thread has ended.
    shared_->monitor->wait_until([&] { return shared_->ended; },
                                 Monitor::Clock::now() + std::chrono::milliseconds(20));
    shared_->monitor->update([&] { ended = shared_->ended; });
    if (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void WorkQueue::push(std::string label, std::function<void()> work) {
  push(WorkItem{std::move(label), std::move(work), false});
}

void WorkQueue::enqueue_wait(std::string label, std::function<void()> work) {
  push(WorkItem{std::move(label), std::move(work), true});
}

void WorkQueue::push(WorkItem item) {
  shared_->monitor->update([&] {
    shared_->items.push_back(std::move(item));
    ++shared_->pushed;
  });
}

void WorkQueue::drain(std::chrono::milliseconds limit) {
  wait_for([] { return false; }, limit);
}

void WorkQueue::wait_for(const std::function<bool()>& ready, std::chrono::milliseconds limit) {
  Monitor& monitor = *shared_->monitor;
  std::size_t target = 0;
  monitor.update([&] { target = shared_->pushed; });
  // After a failure items are skipped, so that `ready` may never hold.
  const auto ended = [&] { return shared_->finished >= target || ready(); };
  bool done = false;
  while (!done) {
    // The next check comes before the running item can have overrun by much.
    monitor.wait_until(ended, Monitor::Clock::now() + limit / 4);
    monitor.update([&] { done = ended(); });
    if (done) break;
    const std::string overrun = monitor.overrun(limit);
    if (!overrun.empty()) {
      monitor.fail_by_overrun(std::make_exception_ptr(DeviceTimeout(overrun)));
      break;
    }
    // After a failure the running item still ends before the caller learns of it: its objects may
    // be destroyed as soon as this returns. wait_until no longer waits then.
    if (monitor.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  monitor.rethrow_if_failed();
}

void WorkQueue::loop(const std::shared_ptr<Shared>& shared) {
  WorkItem item;
  for (bool has_run = false; take(*shared, item, has_run); has_run = true) {
    run(*shared, item);
    item = {};  // frees its captures before it counts as finished
  }
  shared->monitor->update([&] { shared->ended = true; });
}

/// Waits for the next item; returns false at the end. `has_run` is set after the first item.
bool WorkQueue::take(Shared& shared, WorkItem& item, bool has_run) {
  bool taken = false;
  bool stop = false;
  while (true) {
    shared.monitor->update([&] {
      if (std::exchange(has_run, false)) {
        shared.activity->label.clear();
        ++shared.finished;
      }
      stop = shared.stopping;
      if (stop) {
        shared.items.clear();
      } else if (!shared.items.empty()) {
        item = std::move(shared.items.front());
        shared.items.pop_front();
        shared.activity->label = item.label;
        shared.activity->since = Monitor::Clock::now();
        shared.activity->waiting = item.waits;
        taken = true;
      }
    });
    if (taken || stop) return taken;
    shared.monitor->wait([&] { return shared.stopping || !shared.items.empty(); });
    // After a failure wait() returns at once: this avoids spinning while nothing is left to skip.
    if (shared.monitor->failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void WorkQueue::run(Shared& shared, WorkItem& item) {
  if (shared.monitor->failed()) return;
  if (shared.options.activity != nullptr && !item.label.empty()) {
    shared.options.activity->write(shared.options.progress_slot, item.label);
  }
  const auto located = [&](const std::exception& error) {
    const std::string place = item.label.empty()
                                  ? shared.options.name
                                  : fmt::format("{}, action {}", shared.options.name, item.label);
    return fmt::format("{}: {}", place, first_line(error));
  };
  try {
    item.work();
  } catch (const CommunicationError& error) {
    shared.monitor->fail(std::make_exception_ptr(CommunicationError(located(error))));
  } catch (const std::exception& error) {
    shared.monitor->fail(std::make_exception_ptr(std::runtime_error(located(error))));
  } catch (...) {
    shared.monitor->fail(std::current_exception());
  }
}

}  // namespace stratagem::runtime
