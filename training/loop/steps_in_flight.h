// StepsInFlight: steps that are enqueued while those before them run, so that a device goes from
// one to the next without waiting for the host. Their losses stay where they are until they have
// ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/strategy.h"

namespace stratagem::training {

/// Of steps that have ended.
struct EndedSteps {
  double own_sum = 0;  // of the loss over samples; this rank's part
  std::int64_t samples = 0;
  std::int64_t last_batch = 0;  // samples of the last step
  double gradient_norm = 0;     // of the last step, see PendingStep
  std::int64_t skipped = 0;     // whose update was, see PendingStep
  // Which of the others is the first whose norm is not finite, from 0; none: all are.
  std::optional<std::int64_t> not_finite = {};
  std::int64_t steps = 0;
};

class StepsInFlight {
 public:
  using Clock = std::chrono::steady_clock;

  /// `devices` are this rank's, and outlive it; no wait is longer than `limit`.
  StepsInFlight(runtime::DeviceSpan devices, std::chrono::milliseconds limit)
      : devices_(devices), limit_(limit) {}

  void add(std::unique_ptr<strategies::PendingStep> step, std::int64_t samples);
  std::size_t size() const { return steps_.size(); }

  /// Waits until at most `left` steps have not ended. Throws as Device::synchronize does.
  void wait_until_left(std::size_t left);

  /// Since when the devices have had no step; none: they have one.
  std::optional<Clock::time_point> idle_since() const;

  /// Of the steps that have been waited for since they were taken.
  const EndedSteps& ended() const { return ended_; }
  EndedSteps take_ended();

 private:
  struct Step {
    std::unique_ptr<strategies::PendingStep> pending;
    std::int64_t samples = 0;
    std::vector<runtime::EventPointer> ends;  // [own device]
  };

  runtime::DeviceSpan devices_;
  std::chrono::milliseconds limit_;
  std::deque<Step> steps_;
  std::vector<runtime::EventPointer> last_ends_;
  EndedSteps ended_;
};

}  // namespace stratagem::training
