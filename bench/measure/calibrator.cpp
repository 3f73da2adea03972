#include "bench/measure/calibrator.h"

#include <chrono>
#include <cmath>

#include "reports/json_fields.h"
#include "reports/record_fields.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

constexpr double longest_age_s = 24 * 3600;
constexpr double canary_agreement = 0.03;

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<LaunchResult> Calibrator::find(const std::string& kind, const json& asked,
                                             const Config& config,
                                             reports::PredictionBasis& basis) try {
  const auto kept = environment_.cache.find(kind, asked);
  if (!kept || config.recalibrate) return std::nullopt;
  basis.age_s = seconds_since_epoch() - kept->at("time").get<double>();
  if (basis.age_s < 0 || basis.age_s > longest_age_s) return std::nullopt;
  LaunchResult launched{.status = LaunchStatus::ok, .result = kept->at("result"), .error = {}};
  launched.conditions =
      reports::json_fields::read_as<reports::Conditions>(kept->at("conditions"), "conditions");
  const double then = canary_ms(launched.conditions);
  const bool agrees = environment_.keep_calibrations ||
                      std::abs(present_canary_ms(config) - then) <= canary_agreement * then;
  return agrees ? std::optional(std::move(launched)) : std::nullopt;
} catch (const json::exception&) {  // not what was stored
  return std::nullopt;
}

void Calibrator::store(const std::string& kind, const json& asked, json result,
                       const reports::Conditions& conditions) const {
  environment_.cache.store(kind, asked,
                           {{"time", seconds_since_epoch()},
                            {"conditions", json(reports::json_fields::json_of(conditions))},
                            {"result", std::move(result)}});
}

double Calibrator::present_canary_ms(const Config& config) {
  const auto [found, added] = present_canary_ms_.try_emplace(canary_devices(config), 0);
  if (added) {
    found->second = canary_ms(launch_job(environment_, job_about<CanaryJob>(config)).conditions);
  }
  return found->second;
}

}  // namespace stratagem::bench
