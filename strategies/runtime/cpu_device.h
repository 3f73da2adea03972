// CpuDevice: a device that is one thread pinned to its core(s), first in, first out.
//
// It behaves like a CUDA stream, so two cores are two devices and overlap between them is real. It
// has no torch; the caller passes the start of a LibTorch thread in (see cpu_backend.cpp).
#pragma once

#include <memory>

#include "strategies/runtime/device.h"
#include "strategies/runtime/work_queue.h"

namespace stratagem::runtime {

/// Reads and resets the memory statistics of one device.
struct MemoryProbe {
  std::function<MemoryStatistics()> read;
  std::function<void()> reset_peak;
};

class CpuDevice final : public Device {
 public:
  struct Options {
    std::function<void()> on_start;  // runs on the device's thread, after pinning
    MemoryProbe memory;              // empty: zeros
    ProgressPage* activity = nullptr;
  };

  /// Pins the thread to `description.cores` if there are any.
  CpuDevice(DeviceDescription description, std::shared_ptr<Monitor> monitor, Options options);

  void enqueue(Stream stream, std::string label, std::function<void()> work) override;
  EventPointer record(Stream stream) override;
  TimedWork enqueue_timed(Stream stream, std::string label, std::function<void()> work) override;
  EventPointer stamp() override;
  void wait(Stream stream, EventPointer event) override;
  void synchronize(std::chrono::milliseconds limit) override;
  void wait_on_host(const Event& event, std::chrono::milliseconds limit) override;
  MemoryStatistics memory() const override;
  void reset_peak_memory() override;

 private:
  std::shared_ptr<Monitor> monitor_;
  MemoryProbe memory_;
  WorkQueue queue_;
};

/// Pins the calling thread. Throws std::system_error with the cores.
void pin_this_thread(const std::vector<int>& cores);

}  // namespace stratagem::runtime
