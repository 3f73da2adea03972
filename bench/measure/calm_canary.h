// Compares the canary with its calmest run on this machine. A machine that is slow throughout a run
// does not show when the run's own canaries are compared with one another.
#pragma once

#include <map>
#include <string>

#include "bench/machine/noise_sources.h"
#include "bench/measure/measure.h"

namespace stratagem::bench {

/// Compares a run's usual canaries [ms], by devices (canary_devices), with the least known one on
/// the same kind of machine, for any build, and keeps the lesser one for a week. Returns a
/// disturbance, by devices, for each that took more than 5% longer. A canary of 0 means none. Under
/// a launcher, where other hosts take part, it compares nothing.
std::map<std::string, NoiseSource> slow_throughout(const MeasureEnvironment& environment,
                                                   const std::map<std::string, double>& usual_ms);

}  // namespace stratagem::bench
