// The position of a training.
#pragma once

#include <cstdint>

#include "training/best_evaluation.h"

namespace stratagem::training {

struct Position {
  std::int64_t step = 0;  // trained batches
  std::int64_t samples = 0;
  double seconds = 0;        // the duration of steps, without evaluations
  std::int64_t skipped = 0;  // steps whose update was skipped, see PendingStep::skipped()
  BestEvaluation best = {};
};

}  // namespace stratagem::training
