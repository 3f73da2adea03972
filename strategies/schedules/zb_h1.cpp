// zb_h1: stage s may owe s weight gradients, so that no stage holds more micro-batches than the
// first one under 1f1b. The bubble is (p - 1)(F + I - W), a third of 1f1b's if the three take
// equally long: (p - 1) / (3 m + p - 1) (Qi et al. 2023, section 2.2).
#include <algorithm>

#include "strategies/schedules/zero_bubble.h"

namespace stratagem::schedules {
namespace {

Schedule zb_h1(const ScheduleSize& size) { return zero_bubble("zb_h1", size, /*lead=*/1); }

/// With fewer micro-batches than devices the first gradient returns after the other work has ended.
double ideal_bubble(const ScheduleSize& size) {
  return bubble_of(size.devices - 1 + std::max(0, size.devices - size.micro_batches), size);
}

STRATAGEM_REGISTER(ScheduleEntry{"zb_h1", "1f1b whose weight gradients fill the bubble", zb_h1,
                                 ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
