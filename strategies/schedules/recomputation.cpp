#include "strategies/schedules/recomputation.h"

#include <optional>
#include <utility>

namespace stratagem::schedules {
namespace {

/// Returns whether the action brings a gradient to the stage of `pass`.
bool brings_gradient(const Action& action, const Action& pass) {
  const bool brings =
      action.kind == ActionKind::copy_gradient || action.kind == ActionKind::receive_gradient;
  return brings && action.stage == pass.stage && action.micro_batch == pass.micro_batch;
}

std::vector<Action> with_recomputation(const std::vector<Action>& actions,
                                       const std::set<int>& kept) {
  std::vector<Action> all;
  std::optional<Action> last_pass;
  for (const Action& action : actions) {
    const Action forward{ActionKind::forward, action.stage, action.micro_batch};
    if (is_backward(action.kind) && last_pass != forward && !kept.contains(action.stage)) {
      const bool awaits = !all.empty() && brings_gradient(all.back(), action);
      all.insert(all.end() - (awaits ? 1 : 0),
                 {ActionKind::recompute, action.stage, action.micro_batch});
    }
    if (is_pass(action.kind)) last_pass = action;
    all.push_back(action);
  }
  return all;
}

}  // namespace

Schedule add_recomputation(const Schedule& lowered, const std::set<int>& kept) {
  Schedule recomputed = lowered;
  for (auto& actions : recomputed.actions) actions = with_recomputation(actions, kept);
  return recomputed;
}

std::set<Action> recomputed_passes(const Schedule& schedule) {
  std::set<Action> passes;
  for (const auto& actions : schedule.actions) {
    for (const auto& [kind, stage, micro_batch] : actions) {
      if (kind == ActionKind::recompute) passes.insert({ActionKind::forward, stage, micro_batch});
    }
  }
  return passes;
}

}  // namespace stratagem::schedules
