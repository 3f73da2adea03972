// ActionSet: the actions that have happened, one bit each, so that a schedule of a million actions
// needs no tree of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

class ActionSet {
 public:
  /// Makes a set for the actions of these lists and the transfers that they start.
  explicit ActionSet(const std::vector<std::vector<Action>>& lists) {
    for (const auto& list : lists) {
      for (const Action& action : list) {
        stages_ = std::max(stages_, action.stage + 1);
        numbers_ = std::max(numbers_, action.micro_batch + 1);
      }
    }
    const auto each = static_cast<std::size_t>(stages_) * static_cast<std::size_t>(numbers_);
    bits_.resize(action_kinds * each, false);
  }

  /// Returns false for an action outside the lists.
  bool contains(const Action& action) const { return fits(action) && bits_[index(action)]; }

  /// Returns whether it was new; throws std::out_of_range for an action outside the lists.
  bool insert(const Action& action) {
    if (!fits(action)) throw std::out_of_range(to_string(action) + " is beyond its set");
    auto bit = bits_[index(action)];
    if (bit) return false;
    bit = true;
    return true;
  }

 private:
  bool fits(const Action& action) const {
    return action.stage >= 0 && action.stage < stages_ && action.micro_batch >= 0 &&
           action.micro_batch < numbers_;
  }

  std::size_t index(const Action& action) const {
    const auto row = static_cast<std::size_t>(action.kind) * static_cast<std::size_t>(stages_) +
                     static_cast<std::size_t>(action.stage);
    return row * static_cast<std::size_t>(numbers_) + static_cast<std::size_t>(action.micro_batch);
  }

  int stages_ = 0;
  int numbers_ = 0;
  std::vector<bool> bits_;  // [kind][stage][micro-batch or visit]
};

}  // namespace stratagem::schedules
