// What happens to the rows before they are timed: checked, proved right, priced.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"

namespace stratagem::bench {

/// A row on its way from a configuration to a record.
struct PreparedRow {
  Config requested;
  Config config;  // resolved: the cut is filled in
  std::string name;
  int stages = 1;
  double flops_per_step = 0;
  std::optional<double> peak_gflops = {};  // of each of its devices
  nlohmann::json verification = {};        // null when not verified
  nlohmann::json stage_costs = {};         // null when not calibrated
  std::optional<double> predicted_ms = {};
  std::optional<double> predicted_from_two_splits_ms = {};
  std::vector<std::string> marks = {};
  std::optional<reports::Repetition> failure = {};  // why it is not timed
};

/// Throws std::invalid_argument with one line for the first row that cannot work.
std::vector<PreparedRow> check_rows(const std::vector<Config>& rows,
                                    const MeasureEnvironment& environment, Observer& observer);

/// Peak rates of the devices that the rows use; gives every row its peak. Returns the facts for the
/// record. A calibration that fails costs the rows their peak, not the measurement.
reports::Values calibrate_devices(std::vector<PreparedRow>& rows,
                                  const MeasureEnvironment& environment, Observer& observer);

/// Compares every row that asks for it with its oracle. A row that is wrong gets a `failure`.
void verify_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                 Observer& observer);

/// The job that compares a row with its oracle.
nlohmann::json verify_job(const Config& config);

/// Whether the simulator knows what the row does: stages and replicas, but neither stages in
/// replicas nor shared layers.
bool can_be_simulated(const Config& config);

/// Prices the stages of a row that can be simulated, from the cache or by measuring: fills its
/// stage_costs unless the launch that is returned failed. A row that is oversubscribed gets the
/// costs of a machine with a core for each device.
LaunchResult price_stages(PreparedRow& row, const MeasureEnvironment& environment);

/// Prices every row that is made of stages, and predicts its step.
void predict_rows(std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
                  Observer& observer);

/// The rows, equal but for their split size, from which every other one of them is predicted: the
/// second smallest and the second largest split. Nothing with fewer than three.
std::optional<std::pair<std::size_t, std::size_t>> two_calibration_splits(
    const std::vector<std::int64_t>& split_sizes);

/// The error of a launch that gave no result, as the repetition that stands for it.
reports::Repetition failed_repetition(std::int64_t index, const LaunchResult& launched);

/// Throws Interrupted or WorkerFailure for a launch that no row can do without.
void require_result(const std::string& what, const LaunchResult& launched);

/// The answer to `job` of this kind, from the cache or, when it has none, from a worker; kept when
/// the worker gave one and `worth_keeping` says so.
LaunchResult cached_launch(const std::string& kind, const nlohmann::json& question,
                           const nlohmann::json& job, const Config& config,
                           const MeasureEnvironment& environment,
                           const std::function<bool(const nlohmann::json&)>& worth_keeping);

/// The configuration without what only says how it is measured.
nlohmann::json work_of(const Config& config);

}  // namespace stratagem::bench
