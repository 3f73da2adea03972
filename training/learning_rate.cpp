#include "training/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stratagem::training {

double learning_rate(const LearningRateSchedule& schedule, std::int64_t step) {
  const double base = schedule.base;
  if (step < schedule.warm_up) {
    return base * static_cast<double>(step + 1) / static_cast<double>(schedule.warm_up);
  }
  const std::int64_t decaying = std::max<std::int64_t>(schedule.steps - schedule.warm_up, 1);
  const std::int64_t done = step - schedule.warm_up;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(decaying));
  const auto line = [&](double along) { return base + (schedule.last - base) * along; };
  switch (schedule.kind) {
    case DecayKind::constant:
      break;
    case DecayKind::step: {
      const std::int64_t drops = done / decaying;
      return base * std::pow(0.1, static_cast<double>(drops));
    }
    case DecayKind::linear:
      return line(part);
    case DecayKind::cosine:
      return line((1 - std::cos(std::numbers::pi * part)) / 2);
    case DecayKind::wsd:
      return line(std::max(0.0, 5 * part - 4));
  }
  return base;
}

}  // namespace stratagem::training
