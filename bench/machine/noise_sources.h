// Reports, from the kernel, what may make times wrong or unsteady: settings of the machine before a
// run, and events while it ran. The file decides nothing; its findings are printed and recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/machine.h"
#include "reports/record.h"

namespace stratagem::bench {

/// A source of noise, its finding, and its remedy.
struct NoiseSource {
  std::string what;
  std::string found;
  std::string remedy;
};

/// Returns "governor: powersave; cpupower frequency-set -g performance, as root".
std::string to_string(const NoiseSource& disturbance);

/// Returns those of the machine's state: governor, turbo, huge pages, the container's limit. The
/// load average is not one: it still counts this process and the one before it.
std::vector<NoiseSource> standing_noise_sources(const MachineFacts& facts,
                                                const SystemPaths& paths = {});

/// The undisturbed state of a possible source of noise: its `what`, and the state in words.
struct NominalSetting {
  std::string what;
  std::string state;
};
std::vector<NominalSetting> nominal_settings(const MachineFacts& facts,
                                             const SystemPaths& paths = {});

/// Counters that only grow: the difference of two readings is what happened between them. Those
/// that the kernel does not keep stay 0. Times are of this process's processors, in seconds of one.
struct NoiseCounters {
  double seconds = 0;                  // time of a steady clock
  double busy_seconds = 0;             // time of all programs
  double own_seconds = 0;              // time of this process and its ended children
  std::int64_t own_page_faults = 0;    // page faults of the same processes
  bool own_are_all = true;             // whether the measurement has no others here
  double stolen_seconds = 0;           // time taken by the hypervisor for others
  int processors = 1;                  // number of processors
  std::int64_t limited_periods = 0;    // periods stopped by the container's limit
  std::int64_t thermal_throttles = 0;  // throttles of all processors
};

/// Reads only the times and the page faults; all other counters stay 0.
NoiseCounters read_processor_times(const SystemPaths& paths, const std::vector<int>& processors);

/// Does not count children of this process that still run as its own.
NoiseCounters read_noise(const SystemPaths& paths = {},
                         const std::vector<int>& processors = affinity_mask());

/// Returns how many cores' time other programs used between two readings; none if these cannot be
/// distinguished.
std::optional<double> other_processes_cores(const NoiseCounters& before,
                                            const NoiseCounters& after);

/// Returns the cores from which on other programs disturb: a share of the usable ones.
double disturbing_cores(int processors);

/// Returns the processor time from which on other programs disturb a stretch of `seconds`. It is
/// the same share of the processors' time, and the error of counting that by ticks. The error is
/// three standard deviations; a tick hits a program with probability one half.
double disturbing_seconds(std::size_t processors, double seconds);

/// Returns what happened between two readings: stolen time, throttling, and busy other programs.
std::vector<NoiseSource> noise_sources_between(const NoiseCounters& before,
                                               const NoiseCounters& after);

/// Returns the same as numbers, for the record.
reports::Values noise_figures(const MachineFacts& facts, const NoiseCounters& before,
                              const NoiseCounters& after, const SystemPaths& paths = {});

}  // namespace stratagem::bench
