#include "bench/measure/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/config/core_demand.h"
#include "bench/config/options.h"
#include "bench/config/row_name.h"
#include "bench/machine/machine.h"
#include "bench/measure/job_launch.h"

namespace stratagem::bench {
namespace {

using nlohmann::json;

PreparedRow prepared(const Config& requested, const CheckedRow& checked, std::string name) {
  PreparedRow row;
  row.requested = requested;
  row.config = checked.config;
  row.placement = placement_of(checked.config);
  row.name = std::move(name);
  row.stages = checked.stages;
  return row;
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

/// Names the rows that a note is about: one by its name, several by their number.
std::string rows_of_note(const std::vector<std::string>& names, std::size_t all) {
  if (names.size() == 1) return names.front();
  return names.size() == all ? "all rows"
                             : fmt::format("{} rows, such as {}", names.size(), names.front());
}

/// Returns whether the row's devices are this process's cores; workers check those of other ranks.
bool on_own_cores(const Placement& placement, const MeasureEnvironment& environment) {
  return environment.ranks_share_cores || placement.ranks == 1;
}

}  // namespace

json work_of(const Config& config) {
  json work = launch_options(config);
  for (const char* key : {"steps", "protocol", "inputs", "verify", "predict", "oversubscribe"}) {
    work.erase(key);
  }
  return work;
}

reports::Repetition failed_repetition(std::int64_t index, const reports::Error& error) {
  reports::Repetition repetition;
  repetition.index = static_cast<int>(index);
  repetition.error = error;
  return repetition;
}

void require_result(const std::string& what, LaunchStatus status, const reports::Error& error) {
  if (status == LaunchStatus::ok) return;
  if (status == LaunchStatus::interrupted) throw Interrupted();
  if (status == LaunchStatus::usage) throw std::invalid_argument(error.message);
  throw WorkerFailure(what + ": " + error.message);
}

std::vector<PreparedRow> check_rows(const std::vector<Config>& rows,
                                    const MeasureEnvironment& environment, Observer& observer) {
  observer.phase("checking", 1);
  observer.begin(rows.size() == 1 ? "1 row" : fmt::format("{} rows", rows.size()), "");
  for (const Config& row : rows) {
    if (on_own_cores(placement_of(row), environment)) require_cores(row, environment.cores.size());
  }
  CheckJob job;
  job.header.timeout = rows.front().timeout;
  job.configs = rows;
  job.ranks_are_here = environment.ranks_share_cores;
  const auto launched = launch_job(environment, job);
  require_result("checking the rows", launched.status, launched.error);
  std::vector<PreparedRow> result;
  std::map<std::string, std::vector<std::string>> noted;  // [note]: its rows
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const CheckedRow& checked = launched.result.rows.at(index);
    std::string name = row_name(rows[index], environment.catalogue);
    if (!checked.error.empty()) {
      // The name is only needed to distinguish several rows.
      throw std::invalid_argument((rows.size() == 1 ? "" : name + ": ") + checked.error);
    }
    if (!checked.note.empty()) noted[checked.note].push_back(name);
    PreparedRow& row = result.emplace_back(prepared(rows[index], checked, std::move(name)));
    row.marks = marks_of(rows[index], on_own_cores(row.placement, environment)
                                          ? environment.cores.size()
                                          : std::numeric_limits<std::size_t>::max());
  }
  for (const auto& [note, names] : noted)
    observer.note(rows_of_note(names, rows.size()) + ": " + note);
  observer.end(std::nullopt);
  return result;
}

void verify_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                 Observer& observer) {
  const auto asked = [](const PreparedRow& row) { return row.config.verify; };
  observer.phase("verifying",
                 static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), asked)));
  for (PreparedRow& row : rows) {
    if (!row.config.verify) continue;
    observer.begin(row.name, "");
    const auto launched = cached_launch(
        environment, work_of(row.config), job_about<VerifyJob>(row.config, row.placement.ranks),
        [](const VerifyResult& result) { return result.verification.passed; });
    if (launched.status == LaunchStatus::interrupted) throw Interrupted();
    if (launched.status != LaunchStatus::ok) {
      row.failure = failed_repetition(0, launched.error);
      row.failure->error->message = "verification: " + launched.error.message;
    } else {
      row.verification = launched.result;
      const reports::Verification& verification = launched.result.verification;
      if (!verification.passed) row.failure = wrong_update(verification);
    }
    if (row.failure) observer.note(row.name + ": " + row.failure->error->message);
    observer.end(std::nullopt);
  }
}

}  // namespace stratagem::bench
