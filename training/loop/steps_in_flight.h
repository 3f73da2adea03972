// StepsInFlight: steps that are enqueued while the steps before them run, so that a device goes
// from one to the next without waiting for the host. Losses stay on the device until a step has
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

/// Totals of steps that have ended.
struct EndedSteps {
  double own_sum = 0;  // this rank's part of the sum of the loss over samples
  std::int64_t samples = 0;
  std::int64_t last_batch = 0;  // the samples of the last step
  double gradient_norm = 0;     // the last step's norm, see PendingStep
  std::int64_t skipped = 0;     // steps whose update was skipped, see PendingStep
  // The first step that was not skipped and whose norm is not finite, counted from 0.
  std::optional<std::int64_t> not_finite = {};
  std::int64_t steps = 0;
};

class StepsInFlight {
 public:
  using Clock = std::chrono::steady_clock;

  /// `devices` are this rank's and must outlive it. No wait is longer than `limit`.
  StepsInFlight(runtime::DeviceSpan devices, std::chrono::milliseconds limit)
      : devices_(devices), limit_(limit) {}

  void add(std::unique_ptr<strategies::PendingStep> step, std::int64_t samples);
  std::size_t size() const { return steps_.size(); }

  /// Waits until at most `left` steps have not ended. Throws like Device::synchronize.
  void wait_until_left(std::size_t left);

  /// Returns when the devices became idle, or nothing if one still has a step.
  std::optional<Clock::time_point> idle_since() const;

  /// Returns the totals of the steps waited for since the last take_ended().
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
