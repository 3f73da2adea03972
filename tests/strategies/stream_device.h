// A device that behaves as a GPU does, on CPUs: its streams run apart.
//
// Compute and copy streams have threads of their own, and so have stamps that other threads take,
// as a collective's do. Each runs its items in order, after a short random delay; only events order
// one stream's behind another's, and an event's time cannot be read before it has come. An item is
// what a kernel is on a GPU: it runs wholly at its turn. The host's part of an item runs then, too,
// though a GPU's thread runs it earlier and in the order of all its streams: where a strategy's own
// state relies on that order, `apart` is to be off. Then one thread runs the items of compute and
// copy streams as they were enqueued, and only the clocks (stream_clock.h) tell the streams apart,
// from which stream_memory.h finds what runs in the right order by luck alone.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strategies/runtime/cpu_device.h"
#include "strategies/runtime/monitor.h"
#include "strategies/runtime/work_queue.h"
#include "tests/strategies/stream_clock.h"

namespace stratagem::runtime {

class StreamEvent final : public Event {
 public:
  explicit StreamEvent(StreamPointer stream) : stream_(std::move(stream)) {}

  bool complete() const override { return complete_.load(std::memory_order_acquire); }
  std::chrono::steady_clock::time_point time() const override {
    if (complete()) return time_;
    throw std::logic_error("the time of an event of " + stream_->name() +
                           " was read before the event had come");
  }

  const StreamState& stream() const { return *stream_; }
  /// What had run before it; valid once it is complete.
  const StreamClock& clock() const { return clock_; }

  /// Called once, under the monitor's lock where anybody may wait.
  void finish() {
    clock_ = stream_->clock();
    time_ = std::chrono::steady_clock::now();
    complete_.store(true, std::memory_order_release);
  }

 private:
  StreamPointer stream_;
  StreamClock clock_;
  std::chrono::steady_clock::time_point time_{};
  std::atomic<bool> complete_{false};
};

class StreamDevice final : public Device {
 public:
  struct Options {
    int number = unique_number();
    std::function<void()> on_start = {};  // on each thread that runs items
    MemoryProbe memory = {};              // empty: zeros
    ProgressPage* activity = nullptr;     // of the compute stream's items
    bool apart = true;
    bool forgets_copies = false;  // a mistake: its compute stream waits for no event of copies
    std::uint64_t seed = 1;
  };

  StreamDevice(DeviceDescription description, std::shared_ptr<Monitor> monitor, Options options)
      : Device(std::move(description)),
        monitor_(std::move(monitor)),
        memory_(options.memory),
        forgets_copies_(options.forgets_copies) {
    constexpr std::array names{"compute", "copy", "communication"};
    for (std::size_t index = 0; index < names.size(); ++index) {
      states_[index] = std::make_shared<StreamState>(
          options.number, fmt::format("{} {}", this->description().name(), names[index]),
          3 * options.seed + index);
    }
    const auto make_queue = [&](ProgressPage* activity) {
      return std::make_shared<WorkQueue>(
          monitor_, WorkQueue::Options{this->description().name(), options.on_start, activity,
                                       this->description().index});
    };
    queues_[0] = make_queue(options.activity);
    queues_[1] = options.apart ? make_queue(nullptr) : queues_[0];
    queues_[2] = make_queue(nullptr);
  }

  void enqueue(Stream stream, std::string label, std::function<void()> work) override {
    push(index_of(stream), std::move(label), std::move(work));
  }

  EventPointer record(Stream stream) override { return record(index_of(stream)); }

  /// At once on a thread that works for this device. Of another thread it is on a stream that the
  /// device's own work does not wait for, and comes when that gets there.
  EventPointer stamp() override {
    const StreamPointer own = this_thread_state().stream;
    if (own == nullptr || own->device() != states_[0]->device()) return record(communication);
    auto event = std::make_shared<StreamEvent>(own);
    event->finish();
    return event;
  }

  void wait(Stream stream, EventPointer event) override {
    const StreamPointer state = states_[index_of(stream)];
    if (forgets_copies_ && stream == Stream::compute && is_of_copies(*event)) return;
    queues_[index_of(stream)]->enqueue_wait(
        "a wait", [state, known = clock_of_user(), event = std::move(event), monitor = monitor_] {
          state->learn(known);
          if (!monitor->wait([&] { return event->complete(); })) return;
          const auto* of_stream = dynamic_cast<const StreamEvent*>(event.get());
          if (of_stream != nullptr) state->learn(of_stream->clock());
        });
  }

  void synchronize(std::chrono::milliseconds limit) override {
    std::exception_ptr first;
    for (const auto& queue : queues_) {
      try {
        queue->drain(limit);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
    for (const StreamPointer& state : states_) host_learns(state->clock());
  }

  void wait_on_host(const Event& event, std::chrono::milliseconds limit) override {
    const auto& own = dynamic_cast<const StreamEvent&>(event);
    for (std::size_t index = 0; index < states_.size(); ++index) {
      if (states_[index]->number() != own.stream().number()) continue;
      queues_[index]->wait_for([&] { return own.complete(); }, limit);
      return host_learns(own.clock());
    }
    throw std::logic_error(fmt::format("an event of {} was waited for at {}", own.stream().name(),
                                       description().name()));
  }

  MemoryStatistics memory() const override {
    return memory_.read ? memory_.read() : MemoryStatistics{};
  }
  void reset_peak_memory() override {
    if (memory_.reset_peak) memory_.reset_peak();
  }

 private:
  bool is_of_copies(const Event& event) const {
    const auto* of_stream = dynamic_cast<const StreamEvent*>(&event);
    return of_stream != nullptr && of_stream->stream().number() == states_[1]->number();
  }

  static constexpr std::size_t communication = 2;
  static std::size_t index_of(Stream stream) { return stream == Stream::copy ? 1 : 0; }

  void push(std::size_t index, std::string label, std::function<void()> work) {
    const StreamPointer state = states_[index];
    queues_[index]->push(std::move(label),
                         [state, known = clock_of_user(), work = std::move(work)]() mutable {
                           std::this_thread::sleep_for(state->delay());
                           state->learn(known);
                           const CurrentStream current(state);
                           std::exchange(work, {})();  // what it holds goes with the item
                         });
  }

  EventPointer record(std::size_t index) {
    auto event = std::make_shared<StreamEvent>(states_[index]);
    // Not as an item: nothing is known of the thread that takes a stamp.
    queues_[index]->push({}, [event, state = states_[index], known = this_thread_state().clock(),
                              monitor = monitor_] {
      std::this_thread::sleep_for(state->delay());
      state->learn(known);
      monitor->update([&] { event->finish(); });
    });
    return event;
  }

  std::shared_ptr<Monitor> monitor_;
  MemoryProbe memory_;
  bool forgets_copies_;
  std::array<StreamPointer, 3> states_;
  std::array<std::shared_ptr<WorkQueue>, 3> queues_;
};

/// A group of them, as CpuDevices is of CPU devices.
struct StreamDevices {
  explicit StreamDevices(int count) : monitor(std::make_shared<Monitor>()) {
    for (int index = 0; index < count; ++index) {
      DeviceDescription description;
      description.index = index;
      description.separate_copy_stream = true;
      StreamDevice::Options options;
      options.seed = static_cast<std::uint64_t>(index);
      all.push_back(std::make_unique<StreamDevice>(description, monitor, std::move(options)));
    }
  }

  Device& operator[](int index) { return *all.at(static_cast<std::size_t>(index)); }

  std::shared_ptr<Monitor> monitor;
  std::vector<std::unique_ptr<Device>> all;
};

}  // namespace stratagem::runtime
