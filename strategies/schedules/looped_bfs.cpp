// looped_bfs: each device runs all micro-batches through one of its stages before the next stage
// (breadth-first; Lamy-Poirier 2023, "Breadth-First Pipeline Parallelism", section 4.1). The bubble
// is that of interleaved_1f1b, and all micro-batches are held, but a stage's parameters are used in
// one run, so sharded ones are gathered seldom. ScheduleLoopedBFS in torch.distributed.pipelining
// has the same order.
#include <algorithm>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule looped_bfs(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("looped_bfs", size);
  const int stages = size.devices * size.stages_per_device;
  for (int device = 0; device < size.devices; ++device) {
    auto& actions = schedule.actions[static_cast<std::size_t>(device)];
    for (int stage = device; stage < stages; stage += size.devices) {
      for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
        actions.push_back({ActionKind::forward, stage, micro_batch});
      }
    }
    for (int stage = stages - size.devices + device; stage >= 0; stage -= size.devices) {
      for (int micro_batch = size.micro_batches - 1; micro_batch >= 0; --micro_batch) {
        actions.push_back({ActionKind::backward, stage, micro_batch});
      }
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  // With fewer micro-batches than devices, a device waits at each turn for the first one.
  const int stall = (size.stages_per_device - 1) * std::max(0, size.devices - size.micro_batches);
  const int idle = size.devices - 1 + stall;
  return static_cast<double>(idle) / (size.stages_per_device * size.micro_batches + idle);
}

STRATAGEM_REGISTER(ScheduleEntry{"looped_bfs", "gpipe over several stages a device", looped_bfs,
                                 ideal_bubble,
                                 /*stages_per_device=*/any_number});

}  // namespace
}  // namespace stratagem::schedules
