// The learning rate of each update.
#pragma once

#include <cstdint>

namespace stratagem::training {

enum class DecayKind {
  constant,
  step,    // to a tenth every `steps` (torch's StepLR, gamma 0.1)
  linear,  // in a line to `last` (LinearLR)
  cosine,  // along half a cosine to `last` (CosineAnnealingLR; Loshchilov and Hutter 2017)
  wsd,     // constant, then in a line to `last` over the last fifth (warm-up, stable, decay)
};

struct LearningRateSchedule {
  DecayKind kind = DecayKind::constant;
  double base = 0.001;
  double last = 0;           // what it has come to after `steps`, and stays at
  std::int64_t warm_up = 0;  // steps: the first has base / warm_up, the last of them base
  std::int64_t steps = 1;    // of the decay, warm-up included
};

/// Of update `step`, counted from 0.
double learning_rate(const LearningRateSchedule& schedule, std::int64_t step);

/// Whether it is the same in all updates.
inline bool is_constant(const LearningRateSchedule& schedule) {
  return schedule.kind == DecayKind::constant && schedule.warm_up == 0;
}

}  // namespace stratagem::training
