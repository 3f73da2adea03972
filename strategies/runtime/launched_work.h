// LaunchedWork: the kernels that a device's thread has launched and that have not ended.
//
// A kernel that does not end blocks no thread, so the waiter polls. The limit applies to one piece
// of work: a long queue of short ones is not a hang. An overrun or failure is the group's failure,
// so that no other device, and no destructor, waits for its own limit.
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
  /// `device` is its name for errors.
  LaunchedWork(std::shared_ptr<Monitor> monitor, std::string device)
      : monitor_(std::move(monitor)), device_(std::move(device)) {}

  /// Adds a piece of work that ends with `end`. Pieces of one stream end in order. Thread-safe.
  void add(Stream stream, std::string label, EventPointer end);

  /// Returns once `ended` holds. Throws the group's first failure, which is a DeviceTimeout of this
  /// device if nothing has ended for longer than `limit`.
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
