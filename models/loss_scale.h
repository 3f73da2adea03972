// Dynamic loss scaling. Gradients of float16 vanish below 6e-8, so the loss is multiplied before
// the backward pass and the gradients are divided after it (Micikevicius et al. 2018, "Mixed
// Precision Training", section 3.2; torch.amp.GradScaler's rule, with Megatron-LM's hysteresis).
#pragma once

#include <algorithm>
#include <cstdint>

namespace stratagem::models {

class LossScale {
 public:
  static constexpr double highest_at_start = 65536;
  static constexpr int growth_interval = 2000;  // steps
  static constexpr double growth_factor = 2;
  static constexpr double backoff_factor = 0.5;

  /// The values that change from step to step.
  struct State {
    double scale = 1;
    std::int64_t good_steps = 0;      // consecutive steps without an overflow
    std::int64_t overflows_left = 1;  // overflows until the scale falls; 0: each lowers it

    bool operator==(const State&) const = default;
  };

  // The names in a strategy's state: the scale is [] (float64), the counts are [] (int64).
  static constexpr const char* scale_name = "loss_scaler.scale";
  static constexpr const char* good_steps_name = "loss_scaler.good_steps";
  static constexpr const char* overflows_left_name = "loss_scaler.overflows_left";

  /// `scale` is constant unless `dynamic`. It falls at the `hysteresis`-th step whose gradients are
  /// not finite, and at each later one until it has grown.
  LossScale(double scale, bool dynamic, std::int64_t hysteresis = 1)
      : state_{.scale = scale, .overflows_left = hysteresis},
        dynamic_(dynamic),
        hysteresis_(hysteresis) {}

  double value() const { return state_.scale; }
  /// Returns whether neither the scale nor the hysteresis can absorb the next overflow.
  bool at_floor() const { return !dynamic_ || (state_.scale <= 1 && state_.overflows_left <= 1); }

  const State& state() const { return state_; }
  /// Restores the state of a training that continues.
  void load(const State& state) { state_ = state; }

  /// Counts a step, which was skipped unless its gradients were `finite`.
  void note_step(bool finite) {
    if (!dynamic_) return;
    if (!finite) {
      state_.good_steps = 0;
      state_.overflows_left = std::max<std::int64_t>(state_.overflows_left - 1, 0);
      if (state_.overflows_left == 0) state_.scale = std::max(state_.scale * backoff_factor, 1.0);
    } else if (++state_.good_steps == growth_interval) {
      state_ = {.scale = state_.scale * growth_factor, .overflows_left = hysteresis_};
    }
  }

 private:
  State state_;
  bool dynamic_;
  std::int64_t hysteresis_;
};

}  // namespace stratagem::models
