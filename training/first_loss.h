// The expected loss of a training's first step.
#pragma once

#include <cstdint>

namespace stratagem::training {

struct LossRange {
  double low = 0;
  double high = 0;
};

/// Returns the range of the mean cross-entropy of an untrained model. Logits of variance v, and
/// labels that do not depend on them, give a loss of mean ln(classes) + v/2 and of variance
/// v/samples. Usual initial parameters, and inputs of unit scale, make v at most 1: the range is
/// that mean for v from 0 to 1, plus or minus three standard deviations.
LossRange usual_first_loss(std::int64_t classes, std::int64_t samples);

}  // namespace stratagem::training
