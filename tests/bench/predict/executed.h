// Actions that were executed at known times.
#pragma once

#include <chrono>
#include <memory>

#include "strategies/schedules/executor.h"

namespace stratagem::bench {

/// Complete, so many milliseconds after the clock's epoch.
class PastEvent final : public runtime::Event {
 public:
  explicit PastEvent(double ms) : ms_(ms) {}
  bool complete() const override { return true; }
  std::chrono::steady_clock::time_point time() const override {
    using Duration = std::chrono::steady_clock::duration;
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms_)));
  }

 private:
  double ms_;
};

inline schedules::ExecutedAction executed(const schedules::Action& action, double start_ms,
                                          double end_ms) {
  return {.action = action,
          .start = std::make_shared<PastEvent>(start_ms),
          .end = std::make_shared<PastEvent>(end_ms)};
}

}  // namespace stratagem::bench
