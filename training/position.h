// Where a training stands.
#pragma once

#include <cstdint>

#include "training/best_evaluation.h"

namespace stratagem::training {

struct Position {
  std::int64_t step = 0;  // batches that were trained
  std::int64_t samples = 0;
  double seconds = 0;        // of steps, without evaluations
  std::int64_t skipped = 0;  // steps whose update was, see PendingStep::skipped()
  BestEvaluation best = {};
};

}  // namespace stratagem::training
