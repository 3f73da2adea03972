#include "strategies/runtime/cpu_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace stratagem::runtime {
namespace {

class CpuEvent final : public Event {
 public:
  bool complete() const override { return complete_.load(std::memory_order_acquire); }
  std::chrono::steady_clock::time_point time() const override { return time_; }

  /// Called once, under the monitor's lock if devices wait for the event.
  void finish() {
    time_ = std::chrono::steady_clock::now();
    complete_.store(true, std::memory_order_release);
  }

 private:
  std::chrono::steady_clock::time_point time_{};
  std::atomic<bool> complete_{false};
};

WorkQueue::Options queue_options(const DeviceDescription& description,
                                 CpuDevice::Options& options) {
  const auto start = [cores = description.cores, then = options.on_start] {
    if (!cores.empty()) pin_this_thread(cores);
    if (then) then();
  };
  return {description.name(), start, options.activity, description.index};
}

}  // namespace

void pin_this_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("cannot pin a thread to core {}", fmt::join(cores, ", ")));
  }
}

CpuDevice::CpuDevice(DeviceDescription description, std::shared_ptr<Monitor> monitor,
                     Options options)
    : Device(std::move(description)),
      monitor_(monitor),
      memory_(options.memory),
      queue_(std::move(monitor), queue_options(this->description(), options)) {}

void CpuDevice::enqueue(Stream /*stream*/, std::string label, std::function<void()> work) {
  queue_.push(std::move(label), std::move(work));
}

EventPointer CpuDevice::record(Stream /*stream*/) {
  auto event = std::make_shared<CpuEvent>();
  queue_.push({}, [event, monitor = monitor_] { monitor->update([&] { event->finish(); }); });
  return event;
}

/// Queues one item instead of three.
TimedWork CpuDevice::enqueue_timed(Stream /*stream*/, std::string label,
                                   std::function<void()> work) {
  auto start = std::make_shared<CpuEvent>();
  auto end = std::make_shared<CpuEvent>();
  queue_.push(std::move(label), [start, end, monitor = monitor_, work = std::move(work)] {
    start->finish();
    work();
    monitor->update([&] { end->finish(); });
  });
  return {std::move(start), std::move(end)};
}

EventPointer CpuDevice::stamp() {
  auto event = std::make_shared<CpuEvent>();
  event->finish();
  return event;
}

void CpuDevice::wait(Stream /*stream*/, EventPointer event) {
  if (event->complete()) return;
  queue_.enqueue_wait("a wait", [event = std::move(event), monitor = monitor_] {
    monitor->wait([&] { return event->complete(); });
  });
}

void CpuDevice::synchronize(std::chrono::milliseconds limit) { queue_.drain(limit); }

void CpuDevice::wait_on_host(const Event& event, std::chrono::milliseconds limit) {
  queue_.wait_for([&] { return event.complete(); }, limit);
}

MemoryStatistics CpuDevice::memory() const {
  return memory_.read ? memory_.read() : MemoryStatistics{};
}

void CpuDevice::reset_peak_memory() {
  if (memory_.reset_peak) memory_.reset_peak();
}

}  // namespace stratagem::runtime
