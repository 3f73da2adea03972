// LaunchedWork: the kernels that a device's thread has launched and that have not ended.
//
// A kernel that does not end blocks no thread, so whoever waits looks at it again and again. The
// limit is of one piece of work: a long queue of short ones is no hang. What overruns or fails is
// the group's failure, so that no other device, and no destructor, waits for a limit of its own.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "strategies/runtime/device.h"
#include "strategies/runtime/monitor.h"

namespace stratagem::runtime {

class LaunchedWork {
 public:
  /// `device` is its name, for errors.
  LaunchedWork(std::shared_ptr<Monitor> monitor, std::string device)
      : monitor_(std::move(monitor)), device_(std::move(device)) {}

  /// A piece of work that `end` is behind. Those of one stream end in order. From any thread.
  void add(Stream stream, std::string label, EventPointer end);

  /// Returns once `ended` holds. Throws the group's first failure, which is a DeviceTimeout of this
  /// device when nothing has ended for longer than `limit`.
  void wait(const std::function<bool()>& ended, std::chrono::milliseconds limit);

 private:
  struct Piece {
    std::string label;
    EventPointer end;
  };

  bool drop_ended();
  std::string overrun(std::chrono::milliseconds limit);

  std::shared_ptr<Monitor> monitor_;
  std::string device_;
  std::mutex mutex_;
  std::array<std::deque<Piece>, 2> pieces_;  // [stream]
};

}  // namespace stratagem::runtime
