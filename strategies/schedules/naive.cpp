// naive: a micro-batch goes forward and backward through all stages before the next one starts, so
// one device works at a time. With one micro-batch this is model parallelism. Bubble: (p - 1) / p.
#include "strategies/schedules/registry.h"

namespace stratagem::schedules {
namespace {

Schedule naive(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("naive", size);
  for (int stage = 0; stage < size.devices; ++stage) {
    auto& actions = schedule.actions[static_cast<std::size_t>(stage)];
    for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
      actions.push_back({ActionKind::forward, stage, micro_batch});
      actions.push_back({ActionKind::backward, stage, micro_batch});
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return static_cast<double>(size.devices - 1) / size.devices;
}

STRATAGEM_REGISTER(ScheduleEntry{"naive", "one micro-batch at a time through all stages", naive,
                                 ideal_bubble});

}  // namespace
}  // namespace stratagem::schedules
