// interleaved_1f1b: every device holds several runs of layers, so that a micro-batch passes each
// device several times and the ramp at both ends is shorter: bubble (p - 1) / (v m + p - 1) with v
// stages a device, for more transfers and more live micro-batches (Narayanan et al. 2021,
// "Efficient Large-Scale Language Model Training", section 2.2.2).
//
// interleaved_zero_bubble: the same with the backward pass in two halves. Device d may owe d weight
// gradients, as in zb_h1, and with equal F, I and W the bubble is a third.
// ScheduleInterleavedZeroBubble in torch.distributed.pipelining is like it.
#include <algorithm>
#include <deque>

#include "strategies/schedules/v_shape.h"

namespace stratagem::schedules {
namespace {

/// Returns the number of micro-batches that pass a device's stages together: p, or a few more if p
/// does not divide their number, because with fewer the first device would wait for itself.
int group_size(const ScheduleSize& size) {
  const int groups = std::max(1, size.micro_batches / size.devices);
  return (size.micro_batches + groups - 1) / groups;
}

/// Returns the order of one device's forwards, or of its backwards: each group of micro-batches
/// passes its stages one after the other.
std::vector<Action> passes(ActionKind kind, int device, const ScheduleSize& size) {
  std::vector<Action> order;
  const int together = group_size(size);
  for (int group = 0; group < size.micro_batches; group += together) {
    const int end = std::min(group + together, size.micro_batches);
    for (int turn = 0; turn < size.stages_per_device; ++turn) {
      const int chunk = kind == ActionKind::forward ? turn : size.stages_per_device - 1 - turn;
      for (int micro_batch = group; micro_batch < end; ++micro_batch) {
        order.push_back({kind, chunk * size.devices + device, micro_batch});
      }
    }
  }
  return order;
}

/// Returns the number of forwards before the first backward.
int warm_up(int device, const ScheduleSize& size) {
  const int after = size.devices - 1 - device;
  if (size.stages_per_device == 1) return after;
  return 2 * after + (size.stages_per_device - 1) * group_size(size);
}

Schedule interleaved(const ScheduleSize& size) {
  Schedule schedule = empty_schedule("interleaved_1f1b", size);
  for (int device = 0; device < size.devices; ++device) {
    auto& actions = schedule.actions[static_cast<std::size_t>(device)];
    const auto forwards = passes(ActionKind::forward, device, size);
    const auto backwards = passes(ActionKind::backward, device, size);
    const auto ahead = std::min(static_cast<std::size_t>(warm_up(device, size)), forwards.size());
    actions.assign(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
    for (std::size_t index = 0; index < backwards.size(); ++index) {
      if (ahead + index < forwards.size()) actions.push_back(forwards[ahead + index]);
      actions.push_back(backwards[index]);
    }
  }
  return schedule;
}

double ideal_bubble(const ScheduleSize& size) {
  return static_cast<double>(size.devices - 1) /
         (size.stages_per_device * size.micro_batches + size.devices - 1);
}

std::vector<Action> in_halves(const std::vector<Action>& actions, std::size_t most_owed) {
  std::vector<Action> halves;
  std::deque<Action> owed;
  const auto pay = [&] {
    halves.push_back(owed.front());
    owed.pop_front();
  };
  for (const auto& [kind, stage, micro_batch] : actions) {
    if (kind == ActionKind::forward) {
      halves.push_back({kind, stage, micro_batch});
      continue;
    }
    halves.push_back({ActionKind::backward_input, stage, micro_batch});
    owed.push_back({ActionKind::backward_weight, stage, micro_batch});
    if (owed.size() > most_owed) pay();
  }
  while (!owed.empty()) pay();
  return halves;
}

Schedule interleaved_zero_bubble(const ScheduleSize& size) {
  Schedule schedule = interleaved(size);
  schedule.name = "interleaved_zero_bubble";
  schedule.split_backward = true;
  for (std::size_t device = 0; device < schedule.actions.size(); ++device) {
    schedule.actions[device] = in_halves(schedule.actions[device], /*most_owed=*/device);
  }
  return schedule;
}

STRATAGEM_REGISTER(ScheduleEntry{"interleaved_1f1b", "1f1b over several stages a device",
                                 interleaved, ideal_bubble,
                                 /*stages_per_device=*/any_number});

STRATAGEM_REGISTER(ScheduleEntry{
    "interleaved_zero_bubble", "interleaved_1f1b with a third of its bubble",
    interleaved_zero_bubble,
    [](const ScheduleSize& size) { return simulated_bubble(interleaved_zero_bubble(size)); },
    /*stages_per_device=*/any_number});

}  // namespace
}  // namespace stratagem::schedules
