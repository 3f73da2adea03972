#include "strategies/schedules/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

namespace stratagem::schedules {

ActionKind Schedule::input_gradient_kind() const {
  return split_backward ? ActionKind::backward_input : ActionKind::backward;
}

ActionKind Schedule::weight_gradient_kind() const {
  return split_backward ? ActionKind::backward_weight : ActionKind::backward;
}

const std::vector<Action>& predecessors(const Schedule& lowered, const Action& action) {
  static const std::vector<Action> none;
  const auto found = lowered.needs.find(action);
  return found == lowered.needs.end() ? none : found->second;
}

bool awaits_another_device(const Schedule& lowered, const Action& action) {
  const auto device_of = [&](const Action& of) {
    return lowered.device_of_stage.at(static_cast<std::size_t>(of.stage));
  };
  return std::ranges::any_of(predecessors(lowered, action), [&](const Action& needed) {
    return device_of(needed) != device_of(action) ||
           (moves_data(needed.kind) && awaits_another_device(lowered, needed));
  });
}

void for_each_in_order(const Schedule& lowered,
                       const std::function<void(int device, const Action&)>& visit) {
  std::vector<std::size_t> next(lowered.actions.size(), 0);
  std::set<Action> visited;
  std::size_t remaining = 0;
  for (const auto& actions : lowered.actions) remaining += actions.size();
  const auto is_ready = [&](const Action& action) {
    return std::ranges::all_of(predecessors(lowered, action),
                               [&](const Action& needed) { return visited.contains(needed); });
  };
  while (remaining > 0) {
    const std::size_t before = remaining;
    for (std::size_t device = 0; device < lowered.actions.size(); ++device) {
      const auto& actions = lowered.actions[device];
      while (next[device] < actions.size() && is_ready(actions[next[device]])) {
        const Action& action = actions[next[device]++];
        visit(static_cast<int>(device), action);
        visited.insert(action);
        --remaining;
      }
    }
    if (remaining == before) {
      std::string stuck;
      for (std::size_t device = 0; device < lowered.actions.size(); ++device) {
        if (next[device] == lowered.actions[device].size()) continue;
        stuck += fmt::format("{}device {} at {}", stuck.empty() ? "" : ", ", device,
                             to_string(lowered.actions[device][next[device]]));
      }
      throw std::invalid_argument(
          fmt::format("schedule {} deadlocks: {}\n{}", lowered.name, stuck, grid(lowered)));
    }
  }
}

void validate(const Schedule& lowered) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("schedule {} is not valid: {}\n{}", lowered.name, why, grid(lowered)));
  };
  std::map<Action, int> count;
  for (int device = 0; device < lowered.devices(); ++device) {
    for (const Action& action : lowered.actions[static_cast<std::size_t>(device)]) {
      if (action.stage < 0 || action.stage >= lowered.stages()) {
        refuse(fmt::format("{} names a stage that does not exist", to_string(action)));
      }
      const int numbers = lowered.micro_batches * (is_of_a_visit(action.kind) ? 2 : 1);
      if (action.micro_batch < 0 || action.micro_batch >= numbers) {
        refuse(fmt::format("{} names a micro-batch that does not exist", to_string(action)));
      }
      if (lowered.device_of_stage[static_cast<std::size_t>(action.stage)] != device) {
        refuse(fmt::format("{} stands on device {}, its stage lives on another", to_string(action),
                           device));
      }
      const bool of_halves =
          action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight;
      if (lowered.split_backward ? action.kind == ActionKind::backward : of_halves) {
        refuse(fmt::format("{} stands in it, and its backward passes are {}", to_string(action),
                           lowered.split_backward ? "split" : "whole"));
      }
      if (++count[action] > 1) refuse(fmt::format("{} stands in it twice", to_string(action)));
    }
  }
  for (int stage = 0; stage < lowered.stages(); ++stage) {
    const int passes = lowered.not_trained.contains(stage) ? 0 : lowered.micro_batches;
    for (int micro_batch = 0; micro_batch < passes; ++micro_batch) {
      for (const auto kind :
           {ActionKind::forward, lowered.input_gradient_kind(), lowered.weight_gradient_kind()}) {
        const Action action{kind, stage, micro_batch};
        if (!count.contains(action)) refuse(fmt::format("{} is missing", to_string(action)));
      }
    }
    const Action update{ActionKind::optimizer, stage, 0};
    if (lowered.not_updated.contains(stage)) continue;
    if (!count.contains(update)) refuse(fmt::format("{} is missing", to_string(update)));
  }
  for_each_in_order(lowered, [](int, const Action&) {});
}

std::string grid(const Schedule& schedule) {
  std::string text;
  for (std::size_t device = 0; device < schedule.actions.size(); ++device) {
    text += fmt::format("device {} |", device);
    for (const Action& action : schedule.actions[device]) text += ' ' + to_string(action);
    text += '\n';
  }
  return text;
}

std::vector<int> peak_live_micro_batches(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const auto& actions : schedule.actions) {
    int live = 0;
    int peak = 0;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::forward) peak = std::max(peak, ++live);
      if (action.kind == schedule.weight_gradient_kind()) --live;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stratagem::schedules
