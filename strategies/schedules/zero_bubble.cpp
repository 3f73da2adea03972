#include "strategies/schedules/zero_bubble.h"

#include <algorithm>
#include <utility>

namespace stratagem::schedules {

Schedule zero_bubble(std::string name, const ScheduleSize& size, int lead) {
  Schedule schedule = empty_schedule(std::move(name), size);
  schedule.split_backward = true;
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    int forward = 0;
    int weights = 0;
    const int warm_up = std::min(size.micro_batches, lead * (size.devices - 1 - stage) + 1);
    while (forward < warm_up) actions.push_back({ActionKind::forward, stage, forward++});
    for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
      actions.push_back({ActionKind::backward_input, stage, micro_batch});
      if (micro_batch >= lead * stage) {
        actions.push_back({ActionKind::backward_weight, stage, weights++});
      }
      if (forward < size.micro_batches) actions.push_back({ActionKind::forward, stage, forward++});
    }
    while (weights < size.micro_batches) {
      actions.push_back({ActionKind::backward_weight, stage, weights++});
    }
  }
  return schedule;
}

double bubble_of(int idle, const ScheduleSize& size) {
  return static_cast<double>(idle) / (3 * size.micro_batches + idle);
}

}  // namespace stratagem::schedules
