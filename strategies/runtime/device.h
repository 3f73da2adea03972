// Device: an ordered queue of work that runs asynchronously.
//
// A CPU device is one thread pinned to its core(s); a CUDA device is a GPU with its streams, driven
// by one thread. Both behave alike: enqueue returns at once, work of one stream runs in order,
// events order work across devices, and the device itself takes stamps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/runtime/memory_category.h"

namespace stratagem::runtime {

/// Streams of a device. A CPU device runs all of them on its one thread, in the order enqueued.
enum class Stream { compute, copy };

/// A point in a device's queue. It completes when everything enqueued before it has run.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool complete() const = 0;
  /// Returns the time of completion on the steady clock; valid once it is complete.
  virtual std::chrono::steady_clock::time_point time() const = 0;
};
using EventPointer = std::shared_ptr<Event>;

/// Stamps the ends of work, such as a group's collectives, that runs beside a device's own streams
/// and ends in order.
class EndStamps {
 public:
  virtual ~EndStamps() = default;
  /// Returns an event behind the work that `wait` awaits, on the calling thread for a CPU, on its
  /// current stream for CUDA.
  virtual EventPointer stamp_behind(const std::function<void()>& wait) = 0;
};

/// The events around a piece of work.
struct TimedWork {
  EventPointer start;
  EventPointer end;
};

struct MemoryStatistics {
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::optional<CategorizedMemory> by_category = {};  // empty if an allocator keeps no account
};

enum class DeviceKind { cpu, cuda };

inline constexpr int most_devices = 1024;  // the most devices of a job

struct DeviceDescription {
  int index = 0;  // the position in the job
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;         // the number of the GPU; 0 on CPU
  std::vector<int> cores;  // the CPU cores to which it is pinned; empty: not pinned
  bool separate_copy_stream = false;

  std::string name() const;  // returns "cpu:0", "cuda:1"
};

/// Thrown when a work item, or its launched work, runs or waits longer than the time limit.
class DeviceTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  explicit Device(DeviceDescription description) : description_(std::move(description)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceDescription& description() const { return description_; }

  /// Runs `work` on the device after everything enqueued before it on `stream`. Its exception is
  /// the group's failure, after which all devices of the group skip later work.
  virtual void enqueue(Stream stream, std::string label, std::function<void()> work) = 0;

  /// Returns an event behind everything enqueued so far on `stream`.
  virtual EventPointer record(Stream stream) = 0;

  /// Enqueues between two record() calls.
  virtual TimedWork enqueue_timed(Stream stream, std::string label, std::function<void()> work);

  /// Returns an event at this point of the calling thread's work on the device: at once on a CPU,
  /// on the thread's current stream on CUDA. It serves threads other than the device's.
  virtual EventPointer stamp() = 0;

  /// Returns stamps for work that ends in its own order. The device must outlive them.
  virtual std::unique_ptr<EndStamps> make_end_stamps();

  /// Work enqueued on `stream` from now on runs after `event`, which may belong to any device.
  virtual void wait(Stream stream, EventPointer event) = 0;

  /// Returns when all work enqueued so far has run. Throws the group's first failure, once running
  /// work has ended. Throws DeviceTimeout, which is then the group's failure, if one work item, or
  /// its kernels, take longer than `limit`.
  virtual void synchronize(std::chrono::milliseconds limit) = 0;

  /// Returns when an event recorded here is complete; throws like synchronize().
  virtual void wait_on_host(const Event& event, std::chrono::milliseconds limit) = 0;

  /// Ties the device's clock to the host's anew for later events: clocks drift apart, and the
  /// device counts more exactly over a shorter time. The device must be idle.
  virtual void synchronize_clock() {}

  virtual MemoryStatistics memory() const = 0;
  virtual void reset_peak_memory() = 0;

 private:
  DeviceDescription description_;
};

using DeviceSpan = std::span<const std::unique_ptr<Device>>;

/// Synchronizes every device, even after an exception, and throws the first error at the end, when
/// the work's objects may be destroyed. See Device::synchronize.
void synchronize_all(DeviceSpan devices, std::chrono::milliseconds limit);

}  // namespace stratagem::runtime
