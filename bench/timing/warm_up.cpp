#include "bench/timing/warm_up.h"

#include <algorithm>

namespace stratagem::bench {

bool WarmUpCriterion::should_continue(double step_ms) {
  const bool first = steps_ == 0;
  const bool gained = first || step_ms < (1 - faster) * fastest_ms_;
  without_gain_ = gained ? 0 : without_gain_ + 1;
  stationary_ = without_gain_ >= 2 || (!gained && step_ms <= (1 + same) * fastest_ms_);
  fastest_ms_ = first ? step_ms : std::min(fastest_ms_, step_ms);
  total_ms_ += step_ms;
  ++steps_;
  if (steps_ < least_steps) return true;
  return !stationary_ && steps_ < most_steps && total_ms_ < most_ms;
}

}  // namespace stratagem::bench
