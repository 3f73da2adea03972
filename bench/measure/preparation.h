// What happens to the rows before they are timed: checked, proved right, priced.
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
  std::optional<double> peak_gflops = {};         // of each of its devices
  std::optional<VerifyResult> verification = {};  // empty when not verified
  std::optional<StageCosts> stage_costs = {};     // empty when not calibrated
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

/// The error of a launch that gave no result, as the repetition that stands for it.
reports::Repetition failed_repetition(std::int64_t index, const reports::Error& error);

/// For a launch that no row can do without. Throws Interrupted, std::invalid_argument or
/// WorkerFailure unless its status is ok.
void require_result(const std::string& what, LaunchStatus status, const reports::Error& error);

/// The configuration without what only says how it is measured.
nlohmann::json work_of(const Config& config);

}  // namespace stratagem::bench
