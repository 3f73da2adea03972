// 1f1b: after a warm-up of forwards, each stage alternates one forward and one backward, so that
// stage s of p holds at most p - s micro-batches. The bubble is gpipe's: (p - 1) / (m + p - 1)
// (Narayanan et al. 2019, PipeDream, section 3.2; the flushing form of Narayanan et al. 2021).
#include <algorithm>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule one_forward_one_backward(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("1f1b", size);
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    const int warm_up = std::min(size.micro_batches, size.devices - 1 - stage);
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

STRATAGEM_REGISTER(ScheduleEntry{"1f1b", "one forward, one backward in turn",
                                 one_forward_one_backward, ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
