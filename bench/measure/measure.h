// The one way in which anything is measured: rows of configuration in, a record out.
//
//   check every row -> hold the cores -> calibrate the devices -> verify every row
//   -> calibrate the stages -> rounds of launches
//
// This process touches no tensor: every arrow is a job of a worker process (bench/launch/launch.h),
// so a row that crashes, hangs or runs out of memory is one failed row among others. What an
// earlier run has verified or calibrated with the same configuration, build and machine is not done
// again.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/launch/launch.h"
#include "bench/machine/core_lock.h"
#include "bench/machine/machine.h"
#include "bench/measure/cache.h"
#include "bench/measure/observer.h"
#include "bench/predict/predict.h"
#include "reports/record.h"
#include "reports/trace_writer.h"

namespace stratagem::bench {

struct MeasureOptions {
  std::string command_line;
  /// Where the results will be written: unfinished ones are kept beside it. Empty: nowhere.
  std::filesystem::path out;
  bool resume = false;
  bool trace = false;
  /// The socket of whoever lets another run take turns with this one; empty: nobody does.
  std::string turns = {};
  /// See reports::anonymise().
  bool anonymous = false;
};

/// What measuring needs from outside; tests put their own there.
struct MeasureEnvironment {
  using Launcher = std::function<LaunchResult(const Job& job)>;
  /// What a step of the row will take, from its costs.
  using Predictor = std::function<Prediction(const Config&, const StageCosts&)>;

  Launcher launch;
  Predictor predict;
  Catalogue catalogue;
  Cache cache;
  nlohmann::json identity;  // build and machine: what a cached answer is good for
  std::string build;
  std::vector<int> cores;  // those that CPU devices may use
  /// Whether all ranks run on these cores; else each rank's worker checks its own.
  bool ranks_share_cores = true;
  std::filesystem::path lock_folder = {};
  /// Where to look for what disturbs a measurement; nowhere when empty.
  std::optional<SystemPaths> watched = {};
  const Interrupt* interrupt = nullptr;
  /// The caller ignores times: calibrations are short, and are kept even if they were disturbed.
  /// See is_untimed().
  bool untimed = false;
};

struct Measurement {
  reports::ResultFile results;
  std::vector<reports::TraceProcess> traces;
  bool interrupted = false;
  std::size_t finished_launches = 0;
  std::size_t planned_launches = 0;
  bool kept = false;  // FILE.partial has every finished launch
};

/// A worker that every row depends on crashed, hung or was lost.
class WorkerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Waits for at most `timeout` seconds, telling the observer; see bench/machine/core_lock.h.
CoreLocks hold_cores(const std::vector<int>& cores, double timeout,
                     const MeasureEnvironment& environment, Observer& observer, bool share = false);

/// Throws std::invalid_argument, one line, when a row cannot work; nothing was measured then. A row
/// that fails later carries its error, and the others go on. On an interrupt the finished launches
/// are returned and stay in FILE.partial.
Measurement measure(const std::vector<Config>& rows, const MeasureOptions& options,
                    const MeasureEnvironment& environment, Observer& observer);

/// Writes the results to `out`, which is never seen half-written, and removes FILE.partial.
void write_results_and_clean_up(const std::filesystem::path& out,
                                const reports::ResultFile& results);

/// Names the file that has the finished launches if `out` cannot be written. The text ends the line
/// of that error.
std::string where_launches_stay(const Measurement& measurement, const std::filesystem::path& out);

/// The contract's exit code: 4 when a rank failed, hung or was lost, 1 when only verifications
/// failed, else 0; 130 when interrupted.
int exit_code(const Measurement& measurement);

}  // namespace stratagem::bench
