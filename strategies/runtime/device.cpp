#include "strategies/runtime/device.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace stratagem::runtime {
namespace {

/// Stamps work that has ended when the waiting thread goes on.
class StampsOfThisThread final : public EndStamps {
 public:
  explicit StampsOfThisThread(Device& device) : device_(device) {}

  EventPointer stamp_behind(const std::function<void()>& wait) override {
    wait();
    return device_.stamp();
  }

 private:
  Device& device_;
};

}  // namespace

std::string DeviceDescription::name() const {
  return kind == DeviceKind::cuda ? fmt::format("cuda:{}", ordinal) : fmt::format("cpu:{}", index);
}

TimedWork Device::enqueue_timed(Stream stream, std::string label, std::function<void()> work) {
  TimedWork events{.start = record(stream), .end = nullptr};
  enqueue(stream, std::move(label), std::move(work));
  events.end = record(stream);
  return events;
}

std::unique_ptr<EndStamps> Device::make_end_stamps() {
  return std::make_unique<StampsOfThisThread>(*this);
}

void synchronize_all(DeviceSpan devices, std::chrono::milliseconds limit) {
  std::exception_ptr first;
  for (const auto& device : devices) {
    try {
      device->synchronize(limit);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace stratagem::runtime
