// What may make times untrue or unsteady, as the kernel tells it: settings of the machine before a
// run, and what happened while it ran. Nothing here decides anything; it is said and recorded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/machine/machine.h"
#include "reports/record.h"

namespace stratagem::bench {

/// One thing, what was found, and what mends it.
struct NoiseSource {
  std::string what;
  std::string found;
  std::string remedy;
};

/// "governor: powersave; cpupower frequency-set -g performance, as root".
std::string to_string(const NoiseSource& disturbance);

/// Of the machine as it stands: governor, turbo, huge pages, the container's limit. The load
/// average is no part of it: it still counts what this process and the one before it did.
std::vector<NoiseSource> standing_noise_sources(const MachineFacts& facts,
                                                const SystemPaths& paths = {});

/// What each thing that can disturb is like where it does not: a `what` of the disturbances, and
/// its state in words.
struct NominalSetting {
  std::string what;
  std::string state;
};
std::vector<NominalSetting> nominal_settings(const MachineFacts& facts,
                                             const SystemPaths& paths = {});

/// Counters that only grow: two readings tell what happened between them. Those that the kernel
/// does not keep stay 0.
struct NoiseCounters {
  double seconds = 0;                     // of a steady clock
  double processor_ticks = 0;             // all that processors did, idle included
  double idle_ticks = 0;                  // of these, without work or waiting for a disk
  double stolen_ticks = 0;                // taken by the hypervisor for others
  std::int64_t limited_periods = 0;       // in which the container's limit stopped it
  std::int64_t thermal_throttles = 0;     // of all processors
  std::map<int, double> process_seconds;  // processor time of others, by process
  std::map<int, std::string> process_names;
};

NoiseCounters read_noise(const SystemPaths& paths = {});

/// What happened between two readings: stolen time, throttling, and other processes that were busy.
/// Children of this process do not count as others, and neither do processes of the same program:
/// other ranks of this measurement. (Another measurement is kept off these cores by their lock.)
std::vector<NoiseSource> noise_sources_between(const NoiseCounters& before,
                                               const NoiseCounters& after);

/// The same, of a time in which this process did nothing: then busy processors disturb, whoever has
/// made them so.
std::vector<NoiseSource> noise_sources_at_rest(const NoiseCounters& before,
                                               const NoiseCounters& after);

/// The same as figures, for the record.
reports::Values noise_figures(const MachineFacts& facts, const NoiseCounters& before,
                              const NoiseCounters& after, const SystemPaths& paths = {});

}  // namespace stratagem::bench
