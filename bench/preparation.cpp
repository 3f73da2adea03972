#include "bench/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/placement.h"
#include "bench/row_name.h"
#include "reports/record_json.h"

namespace stratagem::bench {

namespace {

using nlohmann::json;

PreparedRow prepared(const Config& requested, const json& checked, std::string name) {
  PreparedRow row;
  row.requested = requested;
  row.config = config_from_json(checked.at("config"));
  row.name = std::move(name);
  row.stages = checked.value("stages", 1);
  row.flops_per_step = checked.value("flops_per_step", 0.0);
  return row;
}

// The row's name says which of several is meant; of a single one everybody knows.
std::string line_about(const std::string& name, std::size_t rows, const std::string& message) {
  return rows == 1 ? message : name + ": " + message;
}

reports::Repetition wrong_update(const reports::Verification& verification) {
  const bool differs = verification.max_relative_error > verification.tolerance;
  const std::string error =
      differs ? fmt::format("error {:.3g} above {:.3g}; ", verification.max_relative_error,
                            verification.tolerance)
              : "";
  reports::Repetition repetition;
  repetition.verification = verification;
  repetition.error = reports::Error{
      .rank = 0,
      .host = host_name(),
      .last_action = "",
      .message = fmt::format("verification failed: {}{}", error, verification.message)};
  return repetition;
}

}  // namespace

json work_of(const Config& config) {
  json work = to_json(config);
  for (const char* key : {"steps", "repetitions", "order", "protocol", "inputs", "verify",
                          "timeout", "oversubscribe"}) {
    work.erase(key);
  }
  return work;
}

std::chrono::duration<double> launch_limit(const Config& config) {
  constexpr double starting_and_leaving_s = 30;
  return std::chrono::duration<double>(config.timeout + starting_and_leaving_s);
}

reports::Repetition failed_repetition(std::int64_t index, const LaunchResult& launched) {
  reports::Repetition repetition;
  repetition.index = static_cast<int>(index);
  repetition.error = launched.error;
  return repetition;
}

void require_result(const std::string& what, const LaunchResult& launched) {
  if (launched.status == LaunchStatus::ok) return;
  if (launched.status == LaunchStatus::interrupted) throw Interrupted();
  if (launched.status == LaunchStatus::usage) throw std::invalid_argument(launched.error.message);
  throw WorkerFailure(what + ": " + launched.error.message);
}

LaunchResult cached_launch(const std::string& kind, const json& question, const json& job,
                           const Config& config, const MeasureEnvironment& environment,
                           const std::function<bool(const json&)>& worth_keeping) {
  const json full_question{{"question", question}, {"identity", environment.identity}};
  if (auto answer = environment.cache.find(kind, full_question)) {
    return {.status = LaunchStatus::ok, .result = std::move(*answer), .error = {}};
  }
  LaunchResult launched = environment.launch(job, launch_limit(config));
  if (launched.status == LaunchStatus::ok && worth_keeping(launched.result)) {
    environment.cache.store(kind, full_question, launched.result);
  }
  return launched;
}

namespace {

/// Whether the row's devices are this process's cores: those of other ranks may be others, which
/// their workers check.
bool on_own_cores(const Config& row, const MeasureEnvironment& environment) {
  return environment.ranks_share_cores || placement_of(row).ranks == 1;
}

}  // namespace

std::vector<PreparedRow> check_rows(const std::vector<Config>& rows,
                                    const MeasureEnvironment& environment, Observer& observer) {
  observer.phase("checking", 1);
  observer.begin(rows.size() == 1 ? "1 row" : fmt::format("{} rows", rows.size()), "");
  json configs = json::array();
  for (const Config& row : rows) {
    if (on_own_cores(row, environment)) require_cores(row, environment.cores.size());
    configs.push_back(to_json(row));
  }
  const LaunchResult launched =
      environment.launch({{"task", "check"}, {"configs", configs}}, launch_limit(rows.front()));
  require_result("checking the rows", launched);
  std::vector<PreparedRow> result;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const json& checked = launched.result.at("configs").at(index);
    std::string name = row_name(rows[index], environment.catalogue);
    if (checked.contains("error")) {
      throw std::invalid_argument(line_about(name, rows.size(), checked["error"]));
    }
    result.push_back(prepared(rows[index], checked, std::move(name)));
    result.back().marks = marks_of(rows[index], on_own_cores(rows[index], environment)
                                                    ? environment.cores.size()
                                                    : std::numeric_limits<std::size_t>::max());
  }
  observer.end(std::nullopt);
  return result;
}

json verify_job(const Config& config) {
  return {{"task", "verify"}, {"ranks", placement_of(config).ranks}, {"config", to_json(config)}};
}

void verify_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                 Observer& observer) {
  const auto asked = [](const PreparedRow& row) { return row.config.verify; };
  observer.phase("verifying",
                 static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), asked)));
  for (PreparedRow& row : rows) {
    if (!row.config.verify) continue;
    observer.begin(row.name, "");
    const LaunchResult launched = cached_launch(
        "verify", work_of(row.config), verify_job(row.config), row.config, environment,
        [](const json& answer) { return answer.value("passed", false); });
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status != LaunchStatus::ok) {
      row.failure = failed_repetition(0, launched);
      row.failure->error->message = "verification: " + launched.error.message;
    } else {
      row.verification = launched.result;
      const auto verification = reports::verification_from_json(launched.result, "verification");
      if (!verification.passed) row.failure = wrong_update(verification);
    }
    if (row.failure) observer.note(row.name + ": " + row.failure->error->message);
    observer.end(std::nullopt);
  }
}

}  // namespace stratagem::bench
