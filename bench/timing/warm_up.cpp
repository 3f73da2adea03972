#include "bench/timing/warm_up.h"

#include <cmath>

namespace stratagem::bench {

bool WarmUpCriterion::should_continue(double step_ms) {
  stationary_ = steps_ > 0 && std::abs(step_ms - previous_ms_) <= same * previous_ms_;
  previous_ms_ = step_ms;
  total_ms_ += step_ms;
  ++steps_;
  if (steps_ < least_steps) return true;
  return !stationary_ && steps_ < most_steps && total_ms_ < most_ms;
}

}  // namespace stratagem::bench
