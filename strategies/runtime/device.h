// Device: an ordered queue of work that runs asynchronously.
//
// A CPU device is one thread pinned to its own core(s); a CUDA device is a GPU with its streams,
// driven by a thread of its own. Both behave alike: enqueue returns at once, work of one stream
// runs in order, events order work across devices, and stamps are taken by the device itself.
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

/// A point in a device's queue. Complete once everything enqueued before it has run.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool complete() const = 0;
  /// When it completed, on the steady clock. Valid once it is complete.
  virtual std::chrono::steady_clock::time_point time() const = 0;
};
using EventPointer = std::shared_ptr<Event>;

/// Stamps the ends of work that runs beside a device's own streams and ends in order: a group's
/// collectives.
class EndStamps {
 public:
  virtual ~EndStamps() = default;
  /// An event behind what `wait` waits for: the calling thread on a CPU, its current stream on
  /// CUDA.
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
  std::optional<CategorizedMemory> by_category = {};  // none where an allocator keeps no account
};

enum class DeviceKind { cpu, cuda };

inline constexpr int most_devices = 1024;  // of a job

struct DeviceDescription {
  int index = 0;  // position in the job
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;         // which GPU; 0 on CPU
  std::vector<int> cores;  // CPU cores that it is pinned to; empty: not pinned
  bool separate_copy_stream = false;

  std::string name() const;  // "cpu:0", "cuda:1"
};

/// Thrown when a work item, or what it launched, runs or waits longer than the time limit.
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

  /// Runs `work` on the device after everything enqueued before it on `stream`. An exception that
  /// it throws is the group's failure; later work of all devices in the group is skipped.
  virtual void enqueue(Stream stream, std::string label, std::function<void()> work) = 0;

  /// An event behind everything enqueued so far on `stream`.
  virtual EventPointer record(Stream stream) = 0;

  /// enqueue() between two record().
  virtual TimedWork enqueue_timed(Stream stream, std::string label, std::function<void()> work);

  /// An event at this very point of what the calling thread does with the device: at once on a CPU,
  /// on the thread's current stream on CUDA. For what threads other than the device's run for it.
  virtual EventPointer stamp() = 0;

  /// Of work that ends in an order of its own. The device outlives them.
  virtual std::unique_ptr<EndStamps> make_end_stamps();

  /// Work enqueued on `stream` from now on runs after `event`, which may belong to any device.
  virtual void wait(Stream stream, EventPointer event) = 0;

  /// Returns when all work enqueued so far has run. Throws the group's first failure, once what
  /// ran meanwhile has ended, and DeviceTimeout when one work item, or the kernels of one, take
  /// longer than `limit`, which is then the group's failure.
  virtual void synchronize(std::chrono::milliseconds limit) = 0;

  /// Returns when an event that was recorded here is complete; throws as synchronize() does.
  virtual void wait_on_host(const Event& event, std::chrono::milliseconds limit) = 0;

  /// Ties the device's clock to the host's anew, for the events recorded from now on: clocks drift
  /// apart, and what a device counts since then is the more exact the less it is. The device must
  /// be idle.
  virtual void synchronize_clock() {}

  virtual MemoryStatistics memory() const = 0;
  virtual void reset_peak_memory() = 0;

 private:
  DeviceDescription description_;
};

using DeviceSpan = std::span<const std::unique_ptr<Device>>;

/// Synchronizes every device, also after one threw, and throws the first error at the end: what
/// the work refers to may go then. See Device::synchronize.
void synchronize_all(DeviceSpan devices, std::chrono::milliseconds limit);

}  // namespace stratagem::runtime
