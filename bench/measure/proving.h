// Judges the timed steps themselves, after all launches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/launch/job.h"
#include "bench/measure/measure.h"
#include "bench/measure/preparation.h"
#include "bench/proof/evidence.h"

namespace stratagem::bench {

/// A row and its finished launches.
struct LaunchedRow {
  PreparedRow& row;
  std::vector<reports::Repetition>& launches;
  const std::vector<Evidence>& evidence;  // [launch]
};

/// Gives each launch its proof. A row with a wrong launch gets a `failure`. If a reference cannot
/// be computed, for lack of memory or time, its rows have no proofs, which is noted to the
/// observer.
///
/// Rows share a reference if they are of one workload and, if there is a BatchNorm, normalise the
/// same samples together. It is kept in the cache. Launches of a row whose devices have one core
/// each add up in one order, and are compared bit for bit. Throws Interrupted.
void prove_rows(const std::vector<LaunchedRow>& rows, const MeasureEnvironment& environment,
                Observer& observer);

/// Returns why a launch of the row may not have skipped an update; empty if it may.
std::string wrong_skip(const Config& config, const Evidence& launch);

/// The most shaken trajectories of a reference. Chance decides how far a single one goes.
inline constexpr std::int64_t most_shakings = 4;

/// Returns the steps of one device that the job asks for, from the cache or from a worker. A kept
/// answer without one of the job's lengths is replaced by one that has all.
///
/// Most launches are right by the rounded trajectory. If `shows_enough` returns false for a
/// reference with fewer than `most_shakings` shaken ones, and the row magnifies roundings, those
/// are computed, too: they allow more.
Launched<ReferenceResult> reference_for(ReferenceJob job, const MeasureEnvironment& environment,
                                        const std::function<bool(const Reference&)>& shows_enough);

}  // namespace stratagem::bench
