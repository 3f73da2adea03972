// Measures rows: configurations in, a record out. Every measurement goes through here.
//
//   check every row -> hold the cores -> calibrate the devices -> verify every row
//   -> calibrate the stages -> rounds of launches
//
// This process touches no tensor: every arrow is a job of a worker process (bench/launch/launch.h),
// so a row that crashes, hangs or runs out of memory is one failed row among others. It does not
// repeat what an earlier run has verified or calibrated with the same configuration, build and
// machine.
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
  /// The path of the results: unfinished ones are kept beside it. Empty: none.
  std::filesystem::path out;
  bool resume = false;
  bool trace = false;
  /// The socket of the process that lets another run take turns with this one; empty: none.
  std::string turns = {};
  /// See reports::anonymise().
  bool anonymous = false;
};

/// The functions and facts that measuring needs from outside; tests use their own.
struct MeasureEnvironment {
  using Launcher = std::function<LaunchResult(const Job& job)>;
  /// Predicts a step of the row from its costs.
  using Predictor = std::function<Prediction(const Config&, const StageCosts&)>;

  Launcher launch;
  Predictor predict;
  Catalogue catalogue;
  Cache cache;
  nlohmann::json identity;  // build and machine for which a cached answer is valid
  std::string build;
  std::vector<int> cores;  // cores that CPU devices may use
  /// True if all ranks run on these cores; else each rank's worker checks its own.
  bool ranks_share_cores = true;
  std::filesystem::path lock_folder = {};
  /// The paths to watch for disturbances; empty: none.
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

/// Throws std::invalid_argument, one line, if a row cannot work; nothing was measured then. A row
/// that fails later carries its error, and the others continue. After an interrupt the finished
/// launches are returned and stay in FILE.partial.
Measurement measure(const std::vector<Config>& rows, const MeasureOptions& options,
                    const MeasureEnvironment& environment, Observer& observer);

/// Writes the results to `out`, which is never seen half-written, and removes FILE.partial.
void write_results_and_clean_up(const std::filesystem::path& out,
                                const reports::ResultFile& results);

/// Names the file with the finished launches if `out` cannot be written. The text ends the line of
/// that error.
std::string where_launches_stay(const Measurement& measurement, const std::filesystem::path& out);

/// Returns the documented exit code: 4 if a rank failed, hung or was lost, 1 if only verifications
/// failed, else 0; 130 if interrupted.
int exit_code(const Measurement& measurement);

}  // namespace stratagem::bench
