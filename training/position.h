// Where a training stands.
#pragma once

#include <cstdint>

namespace stratagem::training {

struct Position {
  std::int64_t step = 0;  // optimizer steps done
  std::int64_t samples = 0;
  double seconds = 0;  // of steps, without evaluations
};

}  // namespace stratagem::training
