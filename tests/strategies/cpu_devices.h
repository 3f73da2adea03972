// CPU devices for tests: threads that are pinned nowhere, and no LibTorch.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "strategies/runtime/cpu_device.h"
#include "strategies/runtime/monitor.h"

namespace stratagem::runtime {

/// Far more than any piece of work in a test takes.
inline constexpr std::chrono::milliseconds ample{30'000};

struct CpuDevices {
  explicit CpuDevices(int count, ProgressPage* activity = nullptr)
      : monitor(std::make_shared<Monitor>()) {
    for (int index = 0; index < count; ++index) {
      DeviceDescription description;
      description.index = index;
      CpuDevice::Options options;
      options.activity = activity;
      all.push_back(std::make_unique<CpuDevice>(description, monitor, std::move(options)));
    }
  }

  Device& operator[](int index) { return *all.at(static_cast<std::size_t>(index)); }

  std::shared_ptr<Monitor> monitor;
  std::vector<std::unique_ptr<Device>> all;
};

inline void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// Work that lasts until it is released, but at most ten seconds.
class HeldWork {
 public:
  void operator()() const {
    for (int wait = 0; wait < 1000 && !released_; ++wait) sleep_ms(10);
  }
  void release() { released_ = true; }

 private:
  std::atomic<bool> released_{false};
};

}  // namespace stratagem::runtime
