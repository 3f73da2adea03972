// What the canary takes on this machine in its calmest run: whether the machine was slow throughout
// a run, of which the run's own canaries, compared with one another, know nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/machine/noise_sources.h"
#include "bench/measure/measure.h"

namespace stratagem::bench {

/// Compares a run's usual canaries [ms], by devices (canary_devices), with the least that a run of
/// the last week had on the same kind of machine, whatever its build, and keeps what is less. A
/// disturbance for each that took more than 5% longer; a canary of 0 is none.
std::vector<NoiseSource> slow_throughout(const MeasureEnvironment& environment,
                                         const std::map<std::string, double>& usual_ms);

}  // namespace stratagem::bench
