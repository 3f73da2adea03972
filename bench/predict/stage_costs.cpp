#include "bench/predict/stage_costs.h"

#include "reports/statistics.h"

namespace stratagem::bench {

double mean_cost(const std::vector<double>& times) {
  const double upper = reports::percentile(times, 0.75);
  const double fence = upper + 3 * (upper - reports::percentile(times, 0.25));
  double sum = 0;
  int count = 0;
  for (const double time : times) {
    if (time > fence) continue;
    sum += time;
    ++count;
  }
  return sum / count;
}

Spread spread_of(const std::vector<double>& times) {
  const double mean = mean_cost(times);
  if (mean <= 0) return {};
  return {reports::percentile(times, 0.25) / mean, reports::percentile(times, 0.75) / mean};
}

StageCosts at_quartile(StageCosts costs, double Spread::*quartile) {
  for (ActionCost& cost : costs.costs) {
    cost.ms *= cost.spread.*quartile;
    cost.alone_ms *= cost.spread.*quartile;
  }
  for (auto* link : {&costs.links.gather, &costs.links.scatter, &costs.links.all_reduce}) {
    for (LinkTime& time : *link) time.ms *= time.spread.*quartile;
  }
  return costs;
}

}  // namespace stratagem::bench
