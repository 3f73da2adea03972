// The keys by which the costs of a row's actions are kept and looked up.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strategies/schedules/schedule.h"

namespace stratagem::bench {

class GroupCostKeys {
 public:
  /// Kind, group, samples if it is about a micro-batch, and whether it is the group's first of its
  /// kind in a step.
  using Key = std::tuple<std::string, int, std::int64_t, bool>;

  /// `samples` [micro-batch].
  GroupCostKeys(const schedules::Schedule& schedule, std::vector<std::int64_t> samples)
      : samples_(std::move(samples)) {
    for (const auto& actions : schedule.actions) {
      std::set<std::pair<schedules::ActionKind, int>> begun;
      for (const schedules::Action& action : actions) {
        if (begun.emplace(action.kind, action.stage).second) first_.insert(action);
      }
    }
  }

  /// Returns a copy's key for a receive from another rank: calibration copies instead.
  Key of(const schedules::Action& action) const {
    using schedules::ActionKind;
    const ActionKind kind =
        action.kind == ActionKind::receive_activation ? ActionKind::copy_activation
        : action.kind == ActionKind::receive_gradient ? ActionKind::copy_gradient
                                                      : action.kind;
    const bool of_a_micro_batch = is_pass(kind) || is_copy(kind);
    return {std::string(name(kind)), action.stage,
            of_a_micro_batch ? samples_.at(static_cast<std::size_t>(action.micro_batch)) : 0,
            first_.contains(action)};
  }

 private:
  std::vector<std::int64_t> samples_;
  std::set<schedules::Action> first_;
};

}  // namespace stratagem::bench
