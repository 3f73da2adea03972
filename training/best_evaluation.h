// The best evaluation of the validation set so far, and how many came after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::training {

/// What an evaluation is judged by: "loss" (the smaller the better) or "accuracy" (the larger).
std::vector<std::string> monitor_names();

struct BestEvaluation {
  std::string monitor = {};  // what `value` is; empty: there was no evaluation
  double value = 0;
  std::int64_t step = -1;                // after which it was; -1: there is none
  std::int64_t last_step = -1;           // of the last evaluation that was counted
  std::int64_t without_improvement = 0;  // evaluations since the best

  bool exists() const { return step >= 0; }
  bool operator==(const BestEvaluation&) const = default;

  /// Counts an evaluation, each step's once: a training that goes on repeats the one that its
  /// checkpoint was written before. Returns whether it is the best; one that is no number is not.
  /// With another monitor than before the comparison begins anew.
  bool count(const std::string& by, double found, std::int64_t at);
};

}  // namespace stratagem::training
