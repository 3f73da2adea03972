// v_half: half the activations of 1f1b, and about half its bubble (V-Half; Qi et al. 2024,
// "Pipeline Parallelism with Controllable Memory", section 3). From p micro-batches on a device of
// p idles 3 p - 4 passes of its half stages, or 3 p - 3 if p is odd, and holds p + 3 micro-batches
// of half stages at most.
#include "strategies/schedules/v_shape.h"

namespace stratagem::schedules {
namespace {

Schedule v_half(const ScheduleSize& size) {
  VBlock block{.forward_down = 2, .forward_up = 1, .backward_down = 2, .backward_up = 1};
  const bool even = size.devices % 2 == 0;
  block.at_foot = even ? 4 : 1;
  block.at_top = 2;
  block.at_end = even ? 2 : 5;
  return repeat_block("v_half", size, block);
}

STRATAGEM_REGISTER(ScheduleEntry{
    "v_half", "half the activations of 1f1b and half its bubble: two stages a device, as a V",
    v_half, [](const ScheduleSize& size) { return simulated_bubble(v_half(size)); },
    /*stages_per_device=*/2});

}  // namespace
}  // namespace stratagem::schedules
