#include "bench/measure/calibrator.h"

#include <cmath>
#include <stdexcept>

#include "reports/json_fields.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

constexpr double longest_age_s = 24 * 3600;
constexpr double canary_agreement = 0.03;

/// Returns nothing if the answer does not have the form that store() writes.
std::optional<LaunchResult> launched_of(const json& answer) {
  if (!answer.is_object() || !answer.contains("result") || !answer.contains("conditions")) {
    return std::nullopt;
  }
  LaunchResult launched{.status = LaunchStatus::ok, .result = answer["result"], .error = {}};
  try {
    launched.conditions =
        reports::json_fields::read_as<reports::Conditions>(answer["conditions"], "conditions");
  } catch (const std::invalid_argument&) {  // a value of another type
    return std::nullopt;
  }
  return launched;
}

}  // namespace

std::optional<LaunchResult> Calibrator::find(const std::string& kind, const json& asked,
                                             const Config& config,
                                             reports::PredictionBasis& basis) {
  if (config.recalibrate) return std::nullopt;
  const auto kept = environment_.cache.find_recent(kind, asked, longest_age_s);
  if (!kept) return std::nullopt;
  const std::optional<LaunchResult> launched = launched_of(kept->answer);
  if (!launched) return std::nullopt;
  const double then = canary_ms(launched->conditions);
  const bool agrees =
      environment_.untimed || std::abs(present_canary_ms(config) - then) <= canary_agreement * then;
  if (!agrees) return std::nullopt;
  basis.age_s = kept->age_s;
  return launched;
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
