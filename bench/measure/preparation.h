// Prepares rows for their timing: checks, verifies and prices them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/config/placement.h"
#include "bench/measure/measure.h"

namespace stratagem::bench {

/// A row on its way from a configuration to a record.
struct PreparedRow {
  Config requested;
  Config config;  // resolved: the cut is filled in
  Placement placement;
  std::string name;
  int stages = 1;
  std::optional<double> peak_gflops = {};         // peak of each of its devices
  std::optional<VerifyResult> verification = {};  // empty if not verified
  std::optional<StageCosts> stage_costs = {};     // empty if not calibrated
  std::optional<Prediction> predicted = {};
  std::optional<reports::PredictionBasis> predicted_from = {};
  std::vector<std::string> marks = {};
  std::optional<reports::Repetition> failure = {};  // why it is not timed
};

/// Throws std::invalid_argument with one line for the first row that cannot work.
std::vector<PreparedRow> check_rows(const std::vector<Config>& rows,
                                    const MeasureEnvironment& environment, Observer& observer);

/// Compares every row that asks for it with its oracle. A row that is wrong gets a `failure`.
void verify_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                 Observer& observer);

/// Returns the error of a launch without a result as a repetition.
reports::Repetition failed_repetition(std::int64_t index, const reports::Error& error);

/// Checks a launch that every row needs. Throws Interrupted, std::invalid_argument or WorkerFailure
/// unless its status is ok.
void require_result(const std::string& what, LaunchStatus status, const reports::Error& error);

/// Returns the configuration without the options of how it is measured.
nlohmann::json work_of(const Config& config);

}  // namespace stratagem::bench
