// What may make times untrue or unsteady, as the kernel tells it: settings of the machine before a
// run, and what happened while it ran. Nothing here decides anything; it is said and recorded.
#pragma once

#include <cstdint>
#include <optional>
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
/// does not keep stay 0. Of the processors that this process may use, in seconds of one.
struct NoiseCounters {
  double seconds = 0;                  // of a steady clock
  double busy_seconds = 0;             // whoever kept them busy
  double own_seconds = 0;              // this process, and its children that have ended
  std::int64_t own_page_faults = 0;    // of the same processes
  bool own_are_all = true;             // of this measurement's on this machine
  double stolen_seconds = 0;           // taken by the hypervisor for others
  int processors = 1;                  // how many there are
  std::int64_t limited_periods = 0;    // in which the container's limit stopped it
  std::int64_t thermal_throttles = 0;  // of all processors
};

/// Reads the times and the page faults alone; all other counters stay 0.
NoiseCounters read_processor_times(const SystemPaths& paths, const std::vector<int>& processors);

/// While children of this process run, what they use is not yet its own.
NoiseCounters read_noise(const SystemPaths& paths = {},
                         const std::vector<int>& processors = affinity_mask());

/// How many cores' time other programs used between two readings; none where it is not known which
/// they are.
std::optional<double> other_processes_cores(const NoiseCounters& before,
                                            const NoiseCounters& after);

/// From so many cores on, other programs disturb: a share of those that may be used.
double disturbing_cores(int processors);

/// Returns the processor time from which on other programs disturb a stretch of `seconds`. It is
/// the same share of the processors' time, and the error of counting that by ticks. The error is
/// three standard deviations; a tick hits a program with probability one half.
double disturbing_seconds(std::size_t processors, double seconds);

/// What happened between two readings: stolen time, throttling, and other programs that were busy.
std::vector<NoiseSource> noise_sources_between(const NoiseCounters& before,
                                               const NoiseCounters& after);

/// The same as figures, for the record.
reports::Values noise_figures(const MachineFacts& facts, const NoiseCounters& before,
                              const NoiseCounters& after, const SystemPaths& paths = {});

}  // namespace stratagem::bench
