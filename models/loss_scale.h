// Dynamic loss scaling: gradients of float16 vanish below 6e-8, so the loss is multiplied before
// the backward pass and the gradients are divided after it (Micikevicius et al. 2018, "Mixed
// Precision Training", section 3.2; torch.amp.GradScaler's rule).
#pragma once

namespace stratagem::models {

class LossScale {
 public:
  static constexpr double highest_at_start = 65536;
  static constexpr int growth_interval = 2000;  // steps

  /// `scale` stays as it is unless `dynamic`.
  LossScale(double scale, bool dynamic) : scale_(scale), dynamic_(dynamic) {}

  double value() const { return scale_; }
  /// Whether it cannot fall any more.
  bool at_floor() const { return !dynamic_ || scale_ <= 1; }

  /// After a step whose gradients were finite, or were not, so that it was skipped.
  void note_step(bool finite) {
    if (!dynamic_) return;
    if (!finite) {
      scale_ = scale_ > 2 ? scale_ / 2 : 1;
      good_steps_ = 0;
    } else if (++good_steps_ == growth_interval) {
      scale_ *= 2;
      good_steps_ = 0;
    }
  }

 private:
  double scale_;
  bool dynamic_;
  int good_steps_ = 0;
};

}  // namespace stratagem::models
