#include "strategies/schedules/lowering.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

namespace stratagem::schedules {
namespace {

/// Returns the send to another rank just after `action`.
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

/// Returns whether it is an update or needs one of the same step.
bool follows_an_update(const Schedule& lowered, const Action& action) {
  const auto updates = [](const Action& other) { return other.kind == ActionKind::optimizer; };
  return updates(action) || std::ranges::any_of(predecessors(lowered, action), updates);
}

}  // namespace

Schedule lower(const Schedule& compute) {
  Schedule lowered = compute;
  lowered.stages_follow_one_another = true;
  for (std::size_t device = 0; device < compute.actions.size(); ++device) {
    auto& actions = lowered.actions[device];
    actions.clear();
    const auto append = [&actions](const Action& copy) {
      actions.push_back(copy);
      return true;
    };
    for (const Action& action : compute.actions[device]) {
      all_copies_before(compute, action, append);
      actions.push_back(action);
      if (const auto send = send_after(compute, action)) actions.push_back(*send);
    }
    for (int stage = 0; stage < compute.stages(); ++stage) {
      if (compute.device_of_stage[static_cast<std::size_t>(stage)] == static_cast<int>(device)) {
        actions.push_back({ActionKind::optimizer, stage, 0});
      }
    }
    actions.shrink_to_fit();
  }
  return lowered;
}

Schedule add_gradient_reduction(const Schedule& lowered) {
  Schedule reduced = lowered;
  for (auto& actions : reduced.actions) {
    std::set<int> exchanged;
    std::vector<Action> all;
    for (const Action& action : actions) {
      const bool scatters = action.kind == ActionKind::reduce_scatter;
      const bool ends = scatters || action.kind == ActionKind::all_reduce_start ||
                        action.kind == ActionKind::optimizer;
      const bool first = ends && exchanged.insert(action.stage).second;
      if (scatters || first) {
        all.push_back({ActionKind::reduce_gradients, action.stage, action.micro_batch});
        reduced.needs[all.back()] = predecessors(lowered, action);
      }
      all.push_back(action);
    }
    actions = std::move(all);
  }
  return reduced;
}

Schedule add_clipping(const Schedule& lowered, bool across_ranks) {
  Schedule clipped = lowered;
  std::vector<Action> norms;
  std::map<int, Action> sums;  // by rank: on the device of its first updated stage
  for (int stage = 0; stage < lowered.stages(); ++stage) {
    if (lowered.not_updated.contains(stage)) continue;
    norms.push_back({ActionKind::gradient_norm, stage, 0});
    clipped.needs[norms.back()] = predecessors(lowered, {ActionKind::optimizer, stage, 0});
    const int rank = rank_of_stage(lowered, stage);
    if (across_ranks) sums.emplace(rank, Action{ActionKind::norm_sum, stage, 0});
  }
  for (auto& actions : clipped.actions) {
    std::vector<Action> before;  // before any update
    std::vector<Action> after;   // the updates and later actions
    for (const Action& action : actions) {
      if (action.kind == ActionKind::optimizer) {
        before.push_back({ActionKind::gradient_norm, action.stage, 0});
        const Action sum = across_ranks ? sums.at(rank_of_stage(lowered, action.stage)) : action;
        if (across_ranks && sum.stage == action.stage) {
          clipped.needs[sum] = norms;
          after.insert(after.begin(), sum);
        }
        clipped.needs[action] = across_ranks ? std::vector<Action>{sum} : norms;
      }
      (follows_an_update(lowered, action) ? after : before).push_back(action);
    }
    actions = std::move(before);
    actions.insert(actions.end(), after.begin(), after.end());
  }
  return clipped;
}

Edges answered_sends(const Schedule& lowered, int device) {
  struct Peer {
    std::size_t known = 0;          // the number of its actions known to have run
    std::optional<Action> first{};  // the first receive from it
  };
  const auto device_of = [&](int stage) {
    return lowered.device_of_stage.at(static_cast<std::size_t>(stage));
  };
  Edges answered;
  std::map<int, Peer> peers;                     // by device
  std::map<Action, std::optional<Action>> open;  // sends, with the first receive before them
  for (const Action& action : lowered.actions.at(static_cast<std::size_t>(device))) {
    if (is_send(action.kind)) {
      const int onwards = action.kind == ActionKind::send_activation ? 1 : -1;
      open.emplace(action, peers[device_of(action.stage + onwards)].first);
    }
    if (!is_receive(action.kind)) continue;
    const Action sent = sender_of(action);
    const int from = device_of(sent.stage);
    Peer& peer = peers[from];
    if (!peer.first) peer.first = action;
    const auto& others = lowered.actions.at(static_cast<std::size_t>(from));
    const auto begin = others.begin() + static_cast<std::ptrdiff_t>(peer.known);
    const auto end = std::find(begin, others.end(), sent);
    if (end == others.end()) continue;  // it lies in the known part
    for (auto before = begin; before != end; ++before) {
      if (!is_receive(before->kind) || open.erase(sender_of(*before)) == 0) continue;
      answered[action].push_back(sender_of(*before));
    }
    peer.known = static_cast<std::size_t>(end - others.begin());
  }
  for (const auto& [sent, receive] : open) {
    if (receive) answered[*receive].push_back(sent);
  }
  return answered;
}

Schedule forward_only(const Schedule& lowered) {
  Schedule forward = lowered;
  for (auto& actions : forward.actions) {
    std::erase_if(actions, [](const Action& action) { return !is_evaluation(action.kind); });
  }
  std::erase_if(forward.needs, [](const auto& edges) { return !is_evaluation(edges.first.kind); });
  return forward;
}

}  // namespace stratagem::schedules
