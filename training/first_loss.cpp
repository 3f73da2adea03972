#include "training/first_loss.h"

#include <algorithm>
#include <cmath>

namespace stratagem::training {

LossRange usual_first_loss(std::int64_t classes, std::int64_t samples) {
  const double knows_nothing = std::log(static_cast<double>(classes));
  const double spread = 3 / std::sqrt(static_cast<double>(samples));
  return {.low = std::max(0.0, knows_nothing - spread), .high = knows_nothing + 0.5 + spread};
}

}  // namespace stratagem::training
