#include "bench/measure/disturbance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "bench/config/placement.h"
#include "bench/machine/noise_sources.h"

namespace stratagem::bench {

namespace {

double slowest(const std::vector<double>& devices) {
  return devices.empty() ? 0 : *std::ranges::max_element(devices);
}

}  // namespace

std::string canary_devices(const Config& config) {
  const std::string cores =
      config.device == "cpu" ? fmt::format(" of {} cores", config.cores_per_device) : "";
  return fmt::format("{} x {}{}{}{}{}", placement_of(config).devices(), config.device, cores,
                     config.device_ids.empty() ? "" : ", ", fmt::join(config.device_ids, "+"),
                     config.tf32 ? ", tf32" : "");
}

std::pair<double, double> canaries_ms(const reports::Conditions& conditions) {
  return {slowest(conditions.canary_before_ms), slowest(conditions.canary_after_ms)};
}

double canary_ms(const reports::Conditions& conditions) {
  const auto [before_ms, after_ms] = canaries_ms(conditions);
  return std::min(before_ms, after_ms);
}

std::string disturbance_of(const reports::Conditions& conditions, double usual_ms) {
  std::vector<std::string> words;
  const auto [before_ms, after_ms] = canaries_ms(conditions);
  const double longer_ms = std::max(before_ms, after_ms) - usual_ms;
  if (longer_ms > slower_canary * usual_ms) {
    words.push_back(
        fmt::format("the canary took {:.0f}% longer than usual", 100 * longer_ms / usual_ms));
  }
  const auto others = conditions.other_processes_cores;
  if (others > disturbing_cores(static_cast<int>(affinity_mask().size()))) {
    words.push_back(fmt::format("other programs used {:.2f} cores", *others));
  }
  if (const auto& own = conditions.own_cores;
      own && own->others_s > disturbing_seconds(own->cores.size(), own->seconds)) {
    words.push_back(fmt::format("other programs had {:.2f} of the {:.2f} s of its cores",
                                own->others_s,
                                static_cast<double>(own->cores.size()) * own->seconds));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace stratagem::bench
