// zb_h2: as many forwards in advance as the first gradient takes to return; stage s may owe 2 s
// weight gradients. From 2 p - 1 micro-batches on no device idles within its own part of the step
// if F, I and W take equally long: the last begins, and ends, p - 1 forwards after the first, which
// is in the next step by then. This holds up to 2 p - 1 micro-batches (Qi et al. 2023, section
// 2.3).
#include <algorithm>

#include "strategies/schedules/zero_bubble.h"

namespace stratagem::schedules {
namespace {

Schedule zb_h2(const ScheduleSize& size) { return zero_bubble("zb_h2", size, /*lead=*/2); }

double ideal_bubble(const ScheduleSize& size) {
  return bubble_of(std::max(0, 2 * size.devices - 1 - size.micro_batches), size);
}

STRATAGEM_REGISTER(ScheduleEntry{"zb_h2", "zb_h1 without a bubble, for up to twice the activations",
                                 zb_h2, ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
