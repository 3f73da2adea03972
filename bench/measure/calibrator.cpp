#include "bench/measure/calibrator.h"

#include <cmath>

#include "reports/json_fields.h"
#include "reports/record_fields.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

constexpr double longest_age_s = 24 * 3600;
constexpr double canary_agreement = 0.03;

}  // namespace

std::optional<LaunchResult> Calibrator::find(const std::string& kind, const json& asked,
                                             const Config& config,
                                             reports::PredictionBasis& basis) try {
  if (config.recalibrate) return std::nullopt;
  const auto kept = environment_.cache.find_recent(kind, asked, longest_age_s);
  if (!kept) return std::nullopt;
  const json& answer = kept->answer;
  LaunchResult launched{.status = LaunchStatus::ok, .result = answer.at("result"), .error = {}};
  launched.conditions =
      reports::json_fields::read_as<reports::Conditions>(answer.at("conditions"), "conditions");
  const double then = canary_ms(launched.conditions);
  const bool agrees =
      environment_.untimed || std::abs(present_canary_ms(config) - then) <= canary_agreement * then;
  if (!agrees) return std::nullopt;
  basis.age_s = kept->age_s;
  return launched;
} catch (const json::exception&) {  // not what was stored
  return std::nullopt;
}

void Calibrator::store(const std::string& kind, const json& asked, json result,
                       const reports::Conditions& conditions) const {
  environment_.cache.store(kind, asked,
                           {{"conditions", json(reports::json_fields::json_of(conditions))},
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
