#include "bench/measure/calm_canary.h"

#include <fmt/format.h>

#include "bench/measure/disturbance.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

constexpr double remembered_s = 7 * 24 * 3600;

/// Returns the least of the last week, or this run's.
double calmest_ms(const Cache& cache, const json& question, double own_ms) {
  const auto kept = cache.find_recent("canary", question, remembered_s);
  return kept && kept->answer.is_number() ? kept->answer.get<double>() : own_ms;
}

}  // namespace

std::map<std::string, NoiseSource> slow_throughout(const MeasureEnvironment& environment,
                                                   const std::map<std::string, double>& usual_ms) {
  if (!environment.ranks_share_cores) return {};  // it includes other hosts' devices
  json machine = environment.identity;
  machine.erase("build");
  std::map<std::string, NoiseSource> found;
  for (const auto& [devices, own_ms] : usual_ms) {
    if (own_ms <= 0) continue;
    const json question{{"devices", devices}, {"identity", machine}};
    const double calm_ms = calmest_ms(environment.cache, question, own_ms);
    if (own_ms <= calm_ms) environment.cache.store("canary", question, own_ms);
    if (own_ms <= (1 + slower_canary) * calm_ms) continue;
    found[devices] = {
        "slow machine",
        fmt::format("the canary ({}) took {:.0f}% longer throughout the run than in a quieter run "
                    "of the last week",
                    devices, 100 * (own_ms / calm_ms - 1)),
        "do not compare its times with other runs; check for heat, a lower clock rate or other "
        "guests"};
  }
  return found;
}

}  // namespace stratagem::bench
