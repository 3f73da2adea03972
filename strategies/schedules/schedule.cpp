#include "strategies/schedules/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "strategies/schedules/action_set.h"

namespace stratagem::schedules {

ActionKind Schedule::input_gradient_kind() const {
  return split_backward ? ActionKind::backward_input : ActionKind::backward;
}

ActionKind Schedule::weight_gradient_kind() const {
  return split_backward ? ActionKind::backward_weight : ActionKind::backward;
}

bool same_device(const Schedule& schedule, int stage, int other) {
  return schedule.device_of_stage.at(static_cast<std::size_t>(stage)) ==
         schedule.device_of_stage.at(static_cast<std::size_t>(other));
}

int rank_of_stage(const Schedule& schedule, int stage) {
  if (schedule.rank_of_device.empty()) return 0;
  const int device = schedule.device_of_stage.at(static_cast<std::size_t>(stage));
  return schedule.rank_of_device.at(static_cast<std::size_t>(device));
}

bool same_rank(const Schedule& schedule, int stage, int other) {
  return rank_of_stage(schedule, stage) == rank_of_stage(schedule, other);
}

bool all_copies_before(const Schedule& compute, const Action& action, const ActionTest& test) {
  const auto [kind, stage, micro_batch] = action;
  const int last = compute.stages() - 1;
  if (kind == ActionKind::forward) {
    const bool from_host = stage == 0 || stage == last;
    if (from_host && !test({ActionKind::copy_input, stage, micro_batch})) return false;
    if (stage == 0 || same_device(compute, stage, stage - 1)) return true;
    return test({same_rank(compute, stage, stage - 1) ? ActionKind::copy_activation
                                                      : ActionKind::receive_activation,
                 stage, micro_batch});
  }
  if (!is_backward(kind) || stage == last || same_device(compute, stage, stage + 1)) return true;
  return test({same_rank(compute, stage, stage + 1) ? ActionKind::copy_gradient
                                                    : ActionKind::receive_gradient,
               stage, micro_batch});
}

namespace {

/// Returns whether `test` holds for all needs of an action of stages that follow one another.
bool all_needs(const Schedule& lowered, const Action& action, const ActionTest& test) {
  using enum ActionKind;
  const auto [kind, stage, micro_batch] = action;
  const int last = lowered.stages() - 1;
  switch (kind) {
    case copy_activation:
      return test({forward, stage - 1, micro_batch});
    case copy_gradient:
      return test({lowered.input_gradient_kind(), stage + 1, micro_batch});
    case send_activation:
      return test({forward, stage, micro_batch});
    case send_gradient:
      return test({lowered.input_gradient_kind(), stage, micro_batch});
    case receive_activation:
    case receive_gradient:
      return test(sender_of(action));
    case forward:
      if (!all_copies_before(lowered, action, test)) return false;
      return stage == 0 || !same_device(lowered, stage, stage - 1) ||
             test({forward, stage - 1, micro_batch});
    case backward:
    case backward_input:
      if (!all_copies_before(lowered, action, test)) return false;
      if (!test({forward, stage, micro_batch})) return false;
      return stage == last || !same_device(lowered, stage, stage + 1) ||
             test({kind, stage + 1, micro_batch});
    case backward_weight:
      return test({backward_input, stage, micro_batch});
    case recompute:
      // It replaces the output, which a device of the same process copies.
      if (!test({forward, stage, micro_batch})) return false;
      return stage == last || same_device(lowered, stage, stage + 1) ||
             !same_rank(lowered, stage, stage + 1) ||
             test({copy_activation, stage + 1, micro_batch});
    case optimizer:
      for (int index = 0; index < lowered.micro_batches; ++index) {
        if (!test({lowered.weight_gradient_kind(), stage, index})) return false;
      }
      return true;
    default:
      return true;  // it waits for nothing
  }
}

}  // namespace

bool all_predecessors(const Schedule& lowered, const Action& action, const ActionTest& test) {
  if (!lowered.needs.empty()) {
    const auto found = lowered.needs.find(action);
    if (found != lowered.needs.end()) return std::ranges::all_of(found->second, test);
  }
  return !lowered.stages_follow_one_another || all_needs(lowered, action, test);
}

std::vector<Action> predecessors(const Schedule& lowered, const Action& action) {
  std::vector<Action> all;
  all_predecessors(lowered, action, [&all](const Action& needed) {
    all.push_back(needed);
    return true;
  });
  return all;
}

bool awaits_another_device(const Schedule& lowered, const Action& action) {
  return !all_predecessors(lowered, action, [&](const Action& needed) {
    return same_device(lowered, needed.stage, action.stage) &&
           !(moves_data(needed.kind) && awaits_another_device(lowered, needed));
  });
}

std::vector<std::size_t> visit_until_stuck(
    const Schedule& lowered, const std::function<void(int device, const Action&)>& visit) {
  std::vector<std::size_t> next(lowered.actions.size(), 0);
  ActionSet visited(lowered.actions);
  const ActionTest is_visited = [&](const Action& needed) { return visited.contains(needed); };
  const auto is_ready = [&](const Action& action) {
    return all_predecessors(lowered, action, is_visited);
  };
  for (bool is_stuck = false; !is_stuck;) {
    is_stuck = true;
    for (std::size_t device = 0; device < lowered.actions.size(); ++device) {
      const auto& actions = lowered.actions[device];
      while (next[device] < actions.size() && is_ready(actions[next[device]])) {
        const Action& action = actions[next[device]++];
        visit(static_cast<int>(device), action);
        visited.insert(action);
        is_stuck = false;
      }
    }
  }
  return next;
}

void for_each_in_order(const Schedule& lowered,
                       const std::function<void(int device, const Action&)>& visit) {
  const std::vector<std::size_t> next = visit_until_stuck(lowered, visit);
  std::string stuck;
  for (std::size_t device = 0; device < lowered.actions.size(); ++device) {
    if (next[device] == lowered.actions[device].size()) continue;
    stuck += fmt::format("{}device {} at {}", stuck.empty() ? "" : ", ", device,
                         to_string(lowered.actions[device][next[device]]));
  }
  if (stuck.empty()) return;
  throw std::invalid_argument(
      fmt::format("schedule {} deadlocks: {}\n{}", lowered.name, stuck, grid(lowered)));
}

namespace {

/// Returns the rule that an action breaks on its device; empty if there is none.
std::string wrong_with(const Schedule& lowered, int device, const Action& action) {
  const std::string text = to_string(action);
  if (action.stage < 0 || action.stage >= lowered.stages()) {
    return fmt::format("{} names a stage that does not exist", text);
  }
  const int numbers = lowered.micro_batches * (is_of_a_visit(action.kind) ? 2 : 1);
  if (action.micro_batch < 0 || action.micro_batch >= numbers) {
    return fmt::format("{} names a micro-batch that does not exist", text);
  }
  if (lowered.device_of_stage[static_cast<std::size_t>(action.stage)] != device) {
    return fmt::format("{} is on device {}, but its stage is on another", text, device);
  }
  const bool of_halves =
      action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight;
  if (lowered.split_backward ? action.kind == ActionKind::backward : of_halves) {
    return fmt::format("{} is not allowed: backward passes are {}", text,
                       lowered.split_backward ? "split" : "whole");
  }
  return {};
}

/// Returns the first action that a complete schedule has and this one lacks.
std::optional<Action> first_missing(const Schedule& lowered, const ActionSet& listed) {
  for (int stage = 0; stage < lowered.stages(); ++stage) {
    const int passes = lowered.not_trained.contains(stage) ? 0 : lowered.micro_batches;
    for (int micro_batch = 0; micro_batch < passes; ++micro_batch) {
      for (const auto kind :
           {ActionKind::forward, lowered.input_gradient_kind(), lowered.weight_gradient_kind()}) {
        const Action action{kind, stage, micro_batch};
        if (!listed.contains(action)) return action;
      }
    }
    const Action update{ActionKind::optimizer, stage, 0};
    if (lowered.not_updated.contains(stage)) continue;
    if (!listed.contains(update)) return update;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fault> first_fault(const Schedule& lowered) {
  ActionSet listed(lowered.actions);
  for (int device = 0; device < lowered.devices(); ++device) {
    const auto& actions = lowered.actions[static_cast<std::size_t>(device)];
    for (std::size_t place = 0; place < actions.size(); ++place) {
      std::string why = wrong_with(lowered, device, actions[place]);
      if (why.empty() && !listed.insert(actions[place])) {
        why = fmt::format("{} appears twice", to_string(actions[place]));
      }
      if (!why.empty()) return Fault{why, device, place};
    }
  }
  const auto missing = first_missing(lowered, listed);
  if (!missing) return std::nullopt;
  return Fault{fmt::format("{} is missing", to_string(*missing)),
               lowered.device_of_stage[static_cast<std::size_t>(missing->stage)]};
}

void validate(const Schedule& lowered) {
  if (const auto fault = first_fault(lowered)) {
    throw std::invalid_argument(
        fmt::format("schedule {} is not valid: {}\n{}", lowered.name, fault->why, grid(lowered)));
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
