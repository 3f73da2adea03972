#include "strategies/runtime/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stratagem::runtime {

void Monitor::update(const std::function<void()>& change) {
  std::vector<std::shared_ptr<Waiter>> ready;
  {
    const std::lock_guard lock(mutex_);
    change();
    for (const auto& waiter : waiters_) {
      if (can_go_on(waiter->ready)) ready.push_back(waiter);
    }
  }
  for (const auto& waiter : ready) waiter->woken.notify_one();
}

bool Monitor::wait(const std::function<bool()>& ready) {
  wait_until(ready, Clock::time_point::max());
  return !failed();
}

bool Monitor::wait_until(const std::function<bool()>& ready, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (can_go_on(ready)) return true;
  const auto waiter = std::make_shared<Waiter>(ready);
  waiters_.push_back(waiter);
  const auto condition = [&] { return can_go_on(ready); };
  bool came = true;
  if (deadline == Clock::time_point::max()) {
    waiter->woken.wait(lock, condition);
  } else {
    came = waiter->woken.wait_until(lock, deadline, condition);
  }
  std::erase(waiters_, waiter);
  return came;
}

void Monitor::fail(std::exception_ptr error) {
  update([&] {
    if (!first_failure_) {
      first_failure_ = std::move(error);
      failed_.store(true, std::memory_order_release);
    }
  });
}

void Monitor::fail_by_overrun(std::exception_ptr error) {
  fail(std::move(error));
  if (on_overrun_) on_overrun_(first_failure());
}

std::exception_ptr Monitor::first_failure() {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

void Monitor::rethrow_if_failed() {
  if (failed()) std::rethrow_exception(first_failure());
}

std::shared_ptr<Activity> Monitor::add_activity(std::string device) {
  auto activity = std::make_shared<Activity>();
  activity->device = std::move(device);
  update([&] { activities_.push_back(activity); });
  return activity;
}

std::string Monitor::overrun(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  Clock::time_point last_start{};
  for (const auto& activity : activities_) last_start = std::max(last_start, activity->since);
  for (const auto& activity : activities_) {
    const auto allowed = activity->waiting ? 2 * limit : limit;
    const auto since = activity->waiting ? last_start : activity->since;
    if (activity->label.empty() || now - since <= allowed) continue;
    activity->overran = true;
    return fmt::format("{} has been in {} for more than {:.3g} s (--timeout)", activity->device,
                       activity->label, std::chrono::duration<double>(allowed).count());
  }
  return {};
}

}  // namespace stratagem::runtime
