// Launches a job and returns its result as the struct that belongs to it.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/measure/measure.h"

namespace stratagem::bench {

/// Returns a job about one row for `ranks` ranks.
template <class Kind>
Kind job_about(const Config& row, int ranks = 1) {
  Kind job;
  job.header.ranks = ranks;
  job.header.timeout = row.timeout;
  job.config = row;
  return job;
}

/// Turns a result that cannot be read into a failure, which names the field.
template <class Kind>
Launched<typename Kind::Result> with_typed_result(const LaunchResult& launched) {
  auto typed = with_result(launched, typename Kind::Result());
  if (launched.status != LaunchStatus::ok) return typed;
  try {
    typed.result = result_from_json<Kind>(launched.result);
  } catch (const std::invalid_argument& error) {
    typed.status = LaunchStatus::failure;
    typed.error.message = error.what();
  }
  return typed;
}

template <class Kind>
Launched<typename Kind::Result> launch_job(const MeasureEnvironment& environment, const Kind& job) {
  return with_typed_result<Kind>(environment.launch(job));
}

/// Accepts every answer that the cache has kept.
struct AnyAnswer {
  bool operator()(const auto& /*result*/, const auto& /*job*/) const { return true; }
};

/// Returns the answer to `question` from the cache or, if it has none that can be read, from a
/// worker; kept if `worth_keeping(result)`. If `is_enough(result, job)`, which may change the job,
/// is false for the kept answer, a worker's answer replaces it.
template <class Kind, class Predicate, class IsEnough = AnyAnswer>
Launched<typename Kind::Result> cached_launch(const MeasureEnvironment& environment,
                                              const nlohmann::json& question, Kind job,
                                              Predicate worth_keeping, IsEnough is_enough = {}) {
  const nlohmann::json asked{{"question", question}, {"identity", environment.identity}};
  if (auto answer = environment.cache.find(Kind::name, asked)) {
    auto kept = with_typed_result<Kind>(
        {.status = LaunchStatus::ok, .result = std::move(*answer), .error = {}});
    if (kept.status == LaunchStatus::ok && is_enough(kept.result, job)) return kept;
  }
  auto launched = launch_job(environment, job);
  if (launched.status == LaunchStatus::ok && worth_keeping(launched.result)) {
    environment.cache.store(Kind::name, asked, to_json(JobResult(launched.result)));
  }
  return launched;
}

}  // namespace stratagem::bench
