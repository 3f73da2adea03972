#include "training/best_evaluation.h"

#include <cmath>

namespace stratagem::training {

std::vector<std::string> monitor_names() { return {"loss", "accuracy"}; }

bool BestEvaluation::count(const std::string& by, double found, std::int64_t at) {
  if (by != monitor) *this = {.monitor = by};
  if (at == last_step) return false;
  last_step = at;
  ++without_improvement;
  const bool is_better = by == "loss" ? found < value : found > value;
  if (std::isnan(found) || (exists() && !is_better)) return false;
  value = found;
  step = at;
  without_improvement = 0;
  return true;
}

}  // namespace stratagem::training
