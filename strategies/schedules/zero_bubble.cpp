// zb_h1: 1f1b with the backward pass in two halves. The gradient of the input goes on at once,
// those of the weights fill what would be idle; stage s may owe s of them, so that no stage holds
// more micro-batches than the first one does under 1f1b. Bubble (p - 1)(F + I - W), a third of
// 1f1b's where the three take equally long: (p - 1) / (3 m + p - 1) (Qi, Wan, Huang, Lin 2023,
// "Zero Bubble Pipeline Parallelism", section 2.2).
#include <algorithm>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule zero_bubble(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("zb_h1", size);
  schedule.split_backward = true;
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    int forward = 0;
    int weights = 0;
    const int warm_up = std::min(size.micro_batches, size.devices - stage);
    while (forward < warm_up) actions.push_back({ActionKind::forward, stage, forward++});
    for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
      actions.push_back({ActionKind::backward_input, stage, micro_batch});
      if (micro_batch >= stage) actions.push_back({ActionKind::backward_weight, stage, weights++});
      if (forward < size.micro_batches) actions.push_back({ActionKind::forward, stage, forward++});
    }
    while (weights < size.micro_batches) {
      actions.push_back({ActionKind::backward_weight, stage, weights++});
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return static_cast<double>(size.devices - 1) / (3 * size.micro_batches + size.devices - 1);
}

const ScheduleRegistration registration{
    {"zb_h1", "1f1b whose weight gradients fill the bubble", zero_bubble, ideal_bubble}};

}  // namespace
}  // namespace stratagem::schedules
