// Decides when a warm-up ends: once steps no longer get faster, and never later than a bound.
#pragma once

namespace stratagem::bench {

/// Takes the times of warm-up steps. They are stationary when one is as long as the fastest before
/// it (at most 2% faster, at most 5% slower), or when two in a row are not more than 2% faster than
/// that: scatter of more than 5% is noise, which further steps do not end. All ranks must give it
/// the same times, so that all end after the same step.
class WarmUpCriterion {
 public:
  static constexpr int least_steps = 2;
  static constexpr int most_steps = 50;
  static constexpr double most_ms = 20000;  // no further step begins after this time
  static constexpr double same = 0.05;
  static constexpr double faster = 0.02;

  /// Takes the next step's time, in ms, the maximum over ranks; returns whether to run another.
  bool should_continue(double step_ms);

  /// Returns the number of steps, and whether they were no longer getting faster.
  int steps() const { return steps_; }
  bool stationary() const { return stationary_; }

 private:
  int steps_ = 0;
  int without_gain_ = 0;  // in a row
  bool stationary_ = false;
  double fastest_ms_ = 0;
  double total_ms_ = 0;
};

}  // namespace stratagem::bench
