#include "strategies/schedules/v_shape.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::schedules {
namespace {

constexpr int period = 6;  // units of a device: F, I and W of two stages

/// A pass of a device in the first repetition of a block.
struct TimedPass {
  int time = 0;
  ActionKind kind = ActionKind::forward;
  int stage = 0;
};

std::array<TimedPass, 4> passes_of(int device, const ScheduleSize& size, const VBlock& block) {
  const auto [down, up] = v_place(device, size);
  const int last = size.devices - 1;
  const int from_foot = last - device;
  const int foot = last * block.forward_down + block.at_foot;
  const int top = foot + last * block.forward_up + block.at_top;
  const int end = top + last * block.backward_down + block.at_end;
  return {{{device * block.forward_down, ActionKind::forward, down},
           {foot + from_foot * block.forward_up, ActionKind::forward, up},
           {top + device * block.backward_down, ActionKind::backward_input, up},
           {end + from_foot * block.backward_up, ActionKind::backward_input, down}}};
}

std::vector<Action> list_of(int device, const ScheduleSize& size, const VBlock& block) {
  const auto passes = passes_of(device, size, block);
  std::set<int> taken;  // units within the period
  for (const TimedPass& pass : passes) taken.insert(pass.time % period);
  std::vector<std::pair<int, Action>> timed;
  for (int micro_batch = 0; micro_batch < size.micro_batches; ++micro_batch) {
    for (const auto& [time, kind, stage] : passes) {
      timed.push_back({time + period * micro_batch, {kind, stage, micro_batch}});
    }
  }
  std::ranges::sort(timed);
  std::set<int> of_weights;  // units that weight gradients have taken
  const std::size_t count = timed.size();
  for (std::size_t index = 0; index < count; ++index) {
    const auto [time, action] = timed[index];
    if (action.kind != ActionKind::backward_input) continue;
    int unit = time + 1;
    while (taken.contains(unit % period) || !of_weights.insert(unit).second) ++unit;
    timed.push_back({unit, {ActionKind::backward_weight, action.stage, action.micro_batch}});
  }
  std::ranges::sort(timed);
  std::vector<Action> list;
  for (const auto& [time, action] : timed) list.push_back(action);
  return list;
}

}  // namespace

VPlace v_place(int device, const ScheduleSize& size) {
  return {.down = device, .up = 2 * size.devices - 1 - device};
}

Schedule empty_v(std::string name, const ScheduleSize& size) {
  Schedule schedule = empty_schedule(std::move(name), size);
  schedule.split_backward = true;
  for (int device = 0; device < size.devices; ++device) {
    schedule.device_of_stage[static_cast<std::size_t>(v_place(device, size).up)] = device;
  }
  return schedule;
}

void TurnList::repeat(int times, std::initializer_list<Turn> turns) {
  for (int time = 0; time < times; ++time) {
    for (const Turn& turn : turns) {
      const int micro_batch = next_[turn]++;
      if (micro_batch >= micro_batches_) continue;
      actions_.push_back({turn.first, turn.second, micro_batch});
    }
  }
}

Schedule repeat_block(std::string name, const ScheduleSize& size, const VBlock& block) {
  Schedule schedule = empty_v(std::move(name), size);
  for (int device = 0; device < size.devices; ++device) {
    schedule.actions[static_cast<std::size_t>(device)] = list_of(device, size, block);
  }
  return schedule;
}

double simulated_bubble(const Schedule& compute, const PassTimes& times) {
  const auto cost = [&](const Action& action) -> Cost {
    switch (action.kind) {
      case ActionKind::forward:
        return times.forward;
      case ActionKind::backward:
        return times.input + times.weight;
      case ActionKind::backward_input:
        return times.input;
      case ActionKind::backward_weight:
        return times.weight;
      case ActionKind::copy_activation:
      case ActionKind::copy_gradient:
        return times.transfer;
      default:
        return 0.0;
    }
  };
  const Timeline timeline = simulate(lower(compute), cost, {.separate_copy_stream = true});
  return idle_fraction(timeline, compute.devices());
}

}  // namespace stratagem::schedules
