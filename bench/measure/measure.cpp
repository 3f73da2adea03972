#include "bench/measure/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "bench/config/core_demand.h"
#include "bench/launch/exit_codes.h"
#include "bench/measure/calm_canary.h"
#include "bench/measure/device_calibration.h"
#include "bench/measure/noise_watch.h"
#include "bench/measure/partial_file.h"
#include "bench/measure/preparation.h"
#include "bench/measure/rounds.h"
#include "bench/measure/step_prediction.h"
#include "reports/anonymous.h"
#include "reports/json_writer.h"

namespace stratagem::bench {
namespace {

/// Returns the metrics that readers of the results may compare, and which way is better.
std::vector<reports::Metric> metrics() {
  return {
      {.name = "real_time", .unit = "ms", .better = "lower", .deterministic = false},
      {.name = "cpu_time", .unit = "ms", .better = "lower", .deterministic = false},
      {.name = "items_per_second", .unit = "samples/s", .better = "higher", .deterministic = false},
      {.name = "tokens_per_second", .unit = "tokens/s", .better = "higher", .deterministic = false},
      {.name = "mfu", .unit = "fraction", .better = "higher", .deterministic = false},
      {.name = "hfu", .unit = "fraction", .better = "higher", .deterministic = false},
      {.name = "bubble_measured", .unit = "fraction", .better = "lower", .deterministic = false},
      {.name = "peak_memory_bytes", .unit = "bytes", .better = "lower", .deterministic = false},
      {.name = "prediction_error", .unit = "fraction", .better = "lower", .deterministic = false},
      {.name = "flops_per_step", .unit = "FLOP", .better = "lower", .deterministic = true},
      {.name = "bubble_ideal", .unit = "fraction", .better = "lower", .deterministic = true},
      {.name = "communication", .unit = "calls or bytes", .better = "lower", .deterministic = true},
      {.name = "live_micro_batches", .unit = "count", .better = "lower", .deterministic = true},
      {.name = "attention_imbalance",
       .unit = "most over mean",
       .better = "lower",
       .deterministic = true},
      {.name = "aten_operators", .unit = "calls", .better = "lower", .deterministic = true},
  };
}

/// Predicts and proves the rows. Returns false if the user interrupts it; what was measured stays.
bool finished(Rounds& rounds, std::vector<PreparedRow>& rows, const MeasureEnvironment& environment,
              Calibrator& calibrator, Observer& observer) {
  try {
    predict_rows(rows, environment, calibrator, observer);
    rounds.prove();
    return true;
  } catch (const Interrupted&) {
    return false;
  }
}

}  // namespace

CoreLocks hold_cores(const std::vector<int>& cores, double timeout,
                     const MeasureEnvironment& environment, Observer& observer, bool share) {
  return CoreLocks(cores, {.timeout = std::chrono::duration<double>(timeout),
                           .share = share,
                           .folder = environment.lock_folder,
                           .interrupt = environment.interrupt,
                           .say = [&](const std::string& line) { observer.note(line); }});
}

Measurement measure(const std::vector<Config>& rows, const MeasureOptions& options,
                    const MeasureEnvironment& environment, Observer& observer) {
  std::vector<PreparedRow> prepared = check_rows(rows, environment, observer);
  std::optional<PartialFile> partial;
  if (!options.out.empty()) partial.emplace(partial_path(options.out));
  const CoreLocks locks = hold_cores(cores_of(rows, environment.cores), rows.front().timeout,
                                     environment, observer, rows.front().oversubscribe);
  if (environment.interrupt != nullptr && environment.interrupt->raised()) throw Interrupted();
  for (PreparedRow& row : prepared) {
    if (locks.waited()) row.marks.emplace_back("waited");
    if (locks.shared()) row.marks.emplace_back("shared_cores");
  }
  reports::Context context = make_context(options.command_line);
  if (const auto& plugins = environment.catalogue.plugins; !plugins.empty()) {
    context.software.emplace_back("plugins", fmt::format("{}", fmt::join(plugins, ", ")));
  }
  context.metrics = metrics();
  NoiseWatch noise(environment.watched, environment.ranks_share_cores, observer);
  Calibrator calibrator(environment);
  context.calibration = calibrate_devices(prepared, environment, calibrator, observer);
  verify_rows(prepared, environment, observer);
  Rounds rounds(prepared, options, environment, observer);
  rounds.run(partial ? &*partial : nullptr);
  const auto slow = slow_throughout(environment, rounds.usual_canaries_ms());
  rounds.mark_slow(slow);
  std::vector<NoiseSource> sources;
  for (const auto& [devices, source] : slow) sources.push_back(source);
  noise.finish(context, sources);
  // Comes last, so that the first figures come early; predictions depend on nothing measured, and
  // proofs on no time. A run that takes turns with another leaves it the cores.
  const bool alone = options.turns.empty();
  const bool has_finished =
      !rounds.interrupted() &&
      (!alone || finished(rounds, prepared, environment, calibrator, observer));
  Measurement measurement = rounds.result(std::move(context));
  measurement.interrupted = !has_finished;
  if (options.anonymous) reports::anonymise(measurement.results);
  return measurement;
}

void write_results_and_clean_up(const std::filesystem::path& out,
                                const reports::ResultFile& results) {
  reports::write_results(out.string(), results);
  std::error_code ignored;
  std::filesystem::remove(partial_path(out), ignored);
}

std::string where_launches_stay(const Measurement& measurement, const std::filesystem::path& out) {
  if (!measurement.kept) return "only the printed table remains";
  return fmt::format(
      "the finished launches are in {}: free space, and the same command with "
      "--resume writes them",
      partial_path(out).string());
}

int exit_code(const Measurement& measurement) {
  if (measurement.interrupted) return exit_codes::interrupted;
  int code = exit_codes::done;
  for (const reports::Row& row : measurement.results.rows) {
    for (const reports::Repetition& repetition : row.repetitions) {
      if (!repetition.error) continue;
      const bool is_wrong = (repetition.verification && !repetition.verification->passed) ||
                            (repetition.proof && !repetition.proof->passed);
      if (!is_wrong) return exit_codes::lost;
      code = exit_codes::mismatch;
    }
  }
  return code;
}

}  // namespace stratagem::bench
