#include "strategies/schedules/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

namespace stratagem::schedules {
namespace {

bool same_device(const Schedule& schedule, int stage, int other) {
  return schedule.device_of_stage.at(static_cast<std::size_t>(stage)) ==
         schedule.device_of_stage.at(static_cast<std::size_t>(other));
}

bool same_rank(const Schedule& schedule, int stage, int other) {
  if (schedule.rank_of_device.empty()) return true;
  const auto rank_of = [&](int of) {
    const int device = schedule.device_of_stage.at(static_cast<std::size_t>(of));
    return schedule.rank_of_device.at(static_cast<std::size_t>(device));
  };
  return rank_of(stage) == rank_of(other);
}

/// What has to be brought to the device just before `action`.
std::vector<Action> copies_before(const Schedule& schedule, const Action& action) {
  const auto [kind, stage, micro_batch] = action;
  const int last = schedule.stages() - 1;
  std::vector<Action> copies;
  if (kind == ActionKind::forward) {
    if (stage == 0 || stage == last) copies.push_back({ActionKind::copy_input, stage, micro_batch});
    if (stage > 0 && !same_rank(schedule, stage, stage - 1)) {
      copies.push_back({ActionKind::receive_activation, stage, micro_batch});
    } else if (stage > 0 && !same_device(schedule, stage, stage - 1)) {
      copies.push_back({ActionKind::copy_activation, stage, micro_batch});
    }
  } else if (is_backward(kind) && stage < last) {
    if (!same_rank(schedule, stage, stage + 1)) {
      copies.push_back({ActionKind::receive_gradient, stage, micro_batch});
    } else if (!same_device(schedule, stage, stage + 1)) {
      copies.push_back({ActionKind::copy_gradient, stage, micro_batch});
    }
  }
  return copies;
}

/// What makes the gradient of a stage's input.
ActionKind input_gradient_of(const Schedule& schedule) {
  return schedule.split_backward ? ActionKind::backward_input : ActionKind::backward;
}

/// What makes the gradients of its weights.
ActionKind weight_gradients_of(const Schedule& schedule) {
  return schedule.split_backward ? ActionKind::backward_weight : ActionKind::backward;
}

/// What has to be handed to another rank just after `action`.
std::optional<Action> send_after(const Schedule& schedule, const Action& action) {
  const auto [kind, stage, micro_batch] = action;
  if (kind == ActionKind::forward && stage + 1 < schedule.stages() &&
      !same_rank(schedule, stage, stage + 1)) {
    return Action{ActionKind::send_activation, stage, micro_batch};
  }
  if (is_backward(kind) && stage > 0 && !same_rank(schedule, stage, stage - 1)) {
    return Action{ActionKind::send_gradient, stage, micro_batch};
  }
  return std::nullopt;
}

/// An action of `kind` before each optimizer action, for its stage.
void insert_before_optimizers(Schedule& schedule, ActionKind kind) {
  for (auto& actions : schedule.actions) {
    std::vector<Action> all;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::optimizer) all.push_back({kind, action.stage, 0});
      all.push_back(action);
    }
    actions = std::move(all);
  }
}

}  // namespace

Schedule lower(const Schedule& compute) {
  Schedule lowered = compute;
  for (std::size_t device = 0; device < compute.actions.size(); ++device) {
    auto& actions = lowered.actions[device];
    actions.clear();
    for (const Action& action : compute.actions[device]) {
      for (const Action& copy : copies_before(compute, action)) actions.push_back(copy);
      actions.push_back(action);
      if (const auto send = send_after(compute, action)) actions.push_back(*send);
    }
    for (int stage = 0; stage < compute.stages(); ++stage) {
      if (compute.device_of_stage[static_cast<std::size_t>(stage)] == static_cast<int>(device)) {
        actions.push_back({ActionKind::optimizer, stage, 0});
      }
    }
  }
  return lowered;
}

Schedule add_replication(const Schedule& lowered, bool with_buffers) {
  Schedule replicated = lowered;
  insert_before_optimizers(replicated, ActionKind::gradient_wait);
  for (int stage = 0; with_buffers && stage < lowered.stages(); ++stage) {
    const int device = lowered.device_of_stage[static_cast<std::size_t>(stage)];
    auto& actions = replicated.actions[static_cast<std::size_t>(device)];
    actions.insert(actions.begin(), {ActionKind::broadcast, stage, 0});
  }
  return replicated;
}

Schedule add_gradient_reduction(const Schedule& lowered) {
  Schedule reduced = lowered;
  insert_before_optimizers(reduced, ActionKind::reduce_gradients);
  return reduced;
}

Schedule forward_only(const Schedule& lowered) {
  Schedule forward = lowered;
  for (auto& actions : forward.actions) {
    std::erase_if(actions, [](const Action& action) { return !is_evaluation(action.kind); });
  }
  return forward;
}

std::vector<Action> predecessors(const Schedule& lowered, const Action& action) {
  const auto [kind, stage, micro_batch] = action;
  const int last = lowered.stages() - 1;
  std::vector<Action> result;
  switch (kind) {
    case ActionKind::copy_activation:
      result.push_back({ActionKind::forward, stage - 1, micro_batch});
      break;
    case ActionKind::copy_gradient:
      result.push_back({input_gradient_of(lowered), stage + 1, micro_batch});
      break;
    case ActionKind::send_activation:
      result.push_back({ActionKind::forward, stage, micro_batch});
      break;
    case ActionKind::send_gradient:
      result.push_back({input_gradient_of(lowered), stage, micro_batch});
      break;
    case ActionKind::receive_activation:
    case ActionKind::receive_gradient:
      result.push_back(sender_of(action));
      break;
    case ActionKind::forward:
      result = copies_before(lowered, action);
      if (stage > 0 && same_device(lowered, stage, stage - 1)) {
        result.push_back({ActionKind::forward, stage - 1, micro_batch});
      }
      break;
    case ActionKind::backward:
    case ActionKind::backward_input:
      result = copies_before(lowered, action);
      result.push_back({ActionKind::forward, stage, micro_batch});
      if (stage < last && same_device(lowered, stage, stage + 1)) {
        result.push_back({kind, stage + 1, micro_batch});
      }
      break;
    case ActionKind::backward_weight:
      result.push_back({ActionKind::backward_input, stage, micro_batch});
      break;
    case ActionKind::gradient_wait:
    case ActionKind::reduce_gradients:
    case ActionKind::optimizer:
      for (int index = 0; index < lowered.micro_batches; ++index) {
        result.push_back({weight_gradients_of(lowered), stage, index});
      }
      break;
    default:
      break;  // waits for nothing
  }
  return result;
}

void for_each_in_order(const Schedule& lowered,
                       const std::function<void(int device, const Action&)>& visit) {
  std::vector<std::size_t> next(lowered.actions.size(), 0);
  std::set<Action> visited;
  std::size_t remaining = 0;
  for (const auto& actions : lowered.actions) remaining += actions.size();
  const auto is_ready = [&](const Action& action) {
    const auto needed = predecessors(lowered, action);
    return std::ranges::all_of(needed, [&](const Action& a) { return visited.contains(a); });
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
      if (action.micro_batch < 0 || action.micro_batch >= lowered.micro_batches) {
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
    for (int micro_batch = 0; micro_batch < lowered.micro_batches; ++micro_batch) {
      for (const auto kind :
           {ActionKind::forward, input_gradient_of(lowered), weight_gradients_of(lowered)}) {
        const Action action{kind, stage, micro_batch};
        if (!count.contains(action)) refuse(fmt::format("{} is missing", to_string(action)));
      }
    }
    const Action update{ActionKind::optimizer, stage, 0};
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
      if (action.kind == weight_gradients_of(schedule)) --live;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace stratagem::schedules
