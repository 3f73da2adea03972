// zb_auto: the order that a search finds for the times of the passes within a limit of
// micro-batches held. With twice as many as devices it leaves no bubble if F, I and W take equally
// long.
#include "strategies/schedules/v_shape.h"
#include "strategies/schedules/zero_bubble_search.h"

namespace stratagem::schedules {
namespace {

Schedule zb_auto(const ScheduleSize& size) {
  const int limit = size.live_limit > 0 ? size.live_limit : 2 * size.devices;
  Schedule schedule = zero_bubble_search(size, size.pass_times, limit);
  schedule.name = "zb_auto";
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return simulated_bubble(zb_auto(size), size.pass_times);
}

STRATAGEM_REGISTER(ScheduleEntry{
    "zb_auto", "the least bubble that a search finds within a limit of micro-batches held", zb_auto,
    ideal_bubble, /*stages_per_device=*/1, /*is_searched=*/true});

}  // namespace
}  // namespace stratagem::schedules
