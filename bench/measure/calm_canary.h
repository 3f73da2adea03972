// What the canary takes on this machine in its calmest run: whether the machine was slow throughout
// a run, of which the run's own canaries, compared with one another, know nothing.
#pragma once

#include <map>
#include <string>

#include "bench/machine/noise_sources.h"
#include "bench/measure/measure.h"

namespace stratagem::bench {

/// Compares a run's usual canaries [ms], by devices (canary_devices), with the least that is known
/// of the same kind of machine, whatever the build, and keeps what is less. It is forgotten a week
/// after it was measured. Returns a disturbance, by devices, for each that took more than 5%
/// longer. A canary of 0 is none. Under a launcher, where other hosts take part, nothing is
/// compared.
std::map<std::string, NoiseSource> slow_throughout(const MeasureEnvironment& environment,
                                                   const std::map<std::string, double>& usual_ms);

}  // namespace stratagem::bench
