// When a warm-up ends: as soon as step times are stationary, and never later than a bound.
#pragma once

namespace stratagem::bench {

/// Fed with the times of warm-up steps, which are stationary when two in a row agree within 5%. All
/// ranks must feed it the same times, so that all end after the same step.
class WarmUpCriterion {
 public:
  static constexpr int least_steps = 2;
  static constexpr int most_steps = 50;
  static constexpr double most_ms = 20000;  // no further step begins after so much
  static constexpr double same = 0.05;

  /// Takes the next step's time, in ms, the maximum over ranks; whether to go on with another.
  bool should_continue(double step_ms);

  /// How many steps there were, and whether the last two agreed.
  int steps() const { return steps_; }
  bool stationary() const { return stationary_; }

 private:
  int steps_ = 0;
  bool stationary_ = false;
  double previous_ms_ = 0;
  double total_ms_ = 0;
};

}  // namespace stratagem::bench
