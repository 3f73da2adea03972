// Calibrator measures the speed of devices, stages and links, or finds it in the cache.
//
// An answer is kept with its time and conditions, the canary among them. It is used again for a
// day, while the present canary agrees with it. An answer that was disturbed or contradicts itself
// is doubtful and not kept.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bench/measure/disturbance.h"
#include "bench/measure/job_launch.h"

namespace stratagem::bench {

template <class Result>
struct Calibrated {
  Launched<Result> launched;
  reports::PredictionBasis basis = {};
};

class Calibrator {
 public:
  /// `environment` must outlive it.
  explicit Calibrator(const MeasureEnvironment& environment) : environment_(environment) {}

  /// Returns the answer to `question`. `contradiction` returns what cannot be true of a result, or
  /// an empty text. Such a result is measured again, up to twice, and a disturbed one once. `keep`
  /// allows its later use.
  template <class Kind>
  Calibrated<typename Kind::Result> calibrate(
      const nlohmann::json& question, const Kind& job,
      const std::function<std::string(const typename Kind::Result&)>& contradiction,
      bool keep = true) {
    Calibrated<typename Kind::Result> made;
    const nlohmann::json asked{{"question", question}, {"identity", environment_.identity}};
    if (auto kept = keep ? find(Kind::name, asked, job.config, made.basis) : std::nullopt) {
      made.launched = with_typed_result<Kind>(*std::move(kept));
      if (made.launched.status == LaunchStatus::ok) return made;
    }
    int left = environment_.untimed ? 1 : most_measurements;
    do {
      made.launched = launch_job(environment_, job);
      if (made.launched.status != LaunchStatus::ok) return made;
      made.basis = {.age_s = 0, .doubt = contradiction(made.launched.result)};
      if (!made.basis.doubt.empty()) continue;
      made.basis.doubt =
          disturbance_of(made.launched.conditions, canary_ms(made.launched.conditions));
      left = std::min(left, job.config.repeat_disturbed ? 2 : 1);
    } while (!made.basis.doubt.empty() && --left > 0);
    if (keep && (environment_.untimed || made.basis.doubt.empty())) {
      store(Kind::name, asked, to_json(JobResult(made.launched.result)), made.launched.conditions);
    }
    return made;
  }

 private:
  static constexpr int most_measurements = 3;

  std::optional<LaunchResult> find(const std::string& kind, const nlohmann::json& asked,
                                   const Config& config, reports::PredictionBasis& basis);
  void store(const std::string& kind, const nlohmann::json& asked, nlohmann::json result,
             const reports::Conditions& conditions) const;
  double present_canary_ms(const Config& config);

  const MeasureEnvironment& environment_;
  std::map<std::string, double> present_canary_ms_;  // by devices
};

}  // namespace stratagem::bench
