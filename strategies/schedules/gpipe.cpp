// gpipe: all forwards, then all backwards, the last micro-batch first. It holds the activations of
// all m micro-batches at once. Bubble: (p - 1) / (m + p - 1) (Huang et al. 2019, section 2.3).
#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule gpipe(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("gpipe", size);
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
      actions.push_back({ActionKind::forward, stage, micro_batch});
    }
    for (int micro_batch = size.micro_batches - 1; micro_batch >= 0; --micro_batch) {
      actions.push_back({ActionKind::backward, stage, micro_batch});
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return static_cast<double>(size.devices - 1) / (size.micro_batches + size.devices - 1);
}

STRATAGEM_REGISTER(ScheduleEntry{"gpipe", "all forwards, then all backwards", gpipe, ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
