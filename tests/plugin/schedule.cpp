// eager_1f1b: 1f1b with twice the warm-up, 2 (p - 1 - s) forwards on stage s of p, so that an
// activation is sent a micro-batch before it is needed and its transfer is hidden (Zhuang et al.
// 2023, "On Optimizing the Communication of Model Parallelism", section 4). It holds up to
// 2 (p - 1 - s) + 1 micro-batches; bubble as 1f1b's: (p - 1) / (m + p - 1).
#include <algorithm>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule eager_1f1b(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("eager_1f1b", size);
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    const int warm_up = std::min(size.micro_batches, 2 * (size.devices - 1 - stage));
    int forward = 0;
    int backward = 0;
    while (forward < warm_up) actions.push_back({ActionKind::forward, stage, forward++});
    while (forward < size.micro_batches) {
      actions.push_back({ActionKind::forward, stage, forward++});
      actions.push_back({ActionKind::backward, stage, backward++});
    }
    while (backward < size.micro_batches) {
      actions.push_back({ActionKind::backward, stage, backward++});
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return static_cast<double>(size.devices - 1) / (size.micro_batches + size.devices - 1);
}

STRATAGEM_REGISTER(ScheduleEntry{"eager_1f1b", "1f1b with transfers a micro-batch ahead",
                                 eager_1f1b, ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
