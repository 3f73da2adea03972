// The best evaluation of the validation set so far and the number of evaluations since.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stratagem::training {

/// Returns the measures that judge an evaluation: "loss" (lower is better), "accuracy" (higher).
std::vector<std::string> monitor_names();

struct BestEvaluation {
  std::string monitor = {};  // the measure of `value`; empty: there was no evaluation
  double value = 0;
  std::int64_t step = -1;                // the step of the best evaluation; -1: there is none
  std::int64_t last_step = -1;           // the step of the last counted evaluation
  std::int64_t without_improvement = 0;  // evaluations since the best one

  bool exists() const { return step >= 0; }
  bool operator==(const BestEvaluation&) const = default;

  /// Counts the evaluation of a step once: a training that resumes repeats the one that followed
  /// its checkpoint. Returns whether it is the best; a NaN never is. A new monitor restarts the
  /// comparison.
  bool count(const std::string& by, double found, std::int64_t at);
};

}  // namespace stratagem::training
