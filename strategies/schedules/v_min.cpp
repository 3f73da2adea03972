// v_min: a third of the activations of 1f1b, and two thirds of its bubble (V-Min; Qi et al. 2024,
// "Pipeline Parallelism with Controllable Memory", section 3). A device of p idles 4 p - 5 passes
// of its half stages, or 4 p - 4 if 3 divides p, and holds about 2 p / 3 + 2 micro-batches of half
// stages.
#include "strategies/schedules/v_shape.h"

namespace stratagem::schedules {
namespace {

Schedule v_min(const ScheduleSize& size) {
  VBlock block;
  if (size.devices % 3 == 0) block.at_foot = block.at_end = 3;
  return repeat_block("v_min", size, block);
}

STRATAGEM_REGISTER(ScheduleEntry{
    "v_min", "a third of the activations of 1f1b, two thirds of its bubble: two stages a device",
    v_min, [](const ScheduleSize& size) { return simulated_bubble(v_min(size)); },
    /*stages_per_device=*/2});

}  // namespace
}  // namespace stratagem::schedules
