// The learning rate of each update.
#pragma once

#include <cstdint>

namespace stratagem::training {

enum class DecayKind {
  constant,
  step,    // falls to a tenth every `steps` (torch's StepLR, gamma 0.1)
  linear,  // falls in a line to `last` (LinearLR)
  cosine,  // falls along half a cosine to `last` (CosineAnnealingLR; Loshchilov and Hutter 2017)
  wsd,     // constant, then in a line to `last` over the last fifth (warm-up, stable, decay)
};

struct LearningRateSchedule {
  DecayKind kind = DecayKind::constant;
  double base = 0.001;
  double last = 0;           // the rate from `steps` on
  std::int64_t warm_up = 0;  // warm-up steps: the first has base / warm_up, the last has base
  std::int64_t steps = 1;    // the steps of the decay, warm-up included
};

/// Returns the learning rate of update `step`, counted from 0.
double learning_rate(const LearningRateSchedule& schedule, std::int64_t step);

/// Returns whether all updates have the same rate.
inline bool is_constant(const LearningRateSchedule& schedule) {
  return schedule.kind == DecayKind::constant && schedule.warm_up == 0;
}

}  // namespace stratagem::training
