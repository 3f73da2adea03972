#include "bench/machine/noise_sources.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "bench/machine/control_group.h"
#include "bench/machine/kernel_files.h"

namespace stratagem::bench {
namespace {

namespace fs = std::filesystem;

constexpr double disturbing_share = 0.05;  // share of the processors that other programs use
constexpr double stolen_share = 0.01;      // share of the processors

std::optional<double> number_in(const fs::path& path) {
  std::istringstream line(first_line(path));
  double value = 0;
  return line >> value ? std::optional(value) : std::nullopt;
}

/// Returns "on", "off", or an empty text if it is unknown.
std::string turbo(const SystemPaths& paths) {
  const fs::path folder = paths.sys / "devices/system/cpu";
  if (const auto boost = number_in(folder / "cpufreq/boost")) return *boost > 0 ? "on" : "off";
  if (const auto none = number_in(folder / "intel_pstate/no_turbo")) {
    return *none > 0 ? "off" : "on";
  }
  return "";
}

/// Returns the throttles of all processors; none if the kernel does not count them.
std::optional<std::int64_t> thermal_throttles(const SystemPaths& paths) {
  std::optional<std::int64_t> count;
  for (int cpu = 0;; ++cpu) {
    const fs::path folder = paths.sys / "devices/system/cpu" / fmt::format("cpu{}", cpu);
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) return count;
    const auto own = number_in(folder / "thermal_throttle/core_throttle_count");
    if (own) count = count.value_or(0) + static_cast<std::int64_t>(*own);
  }
}

/// Reads the lines "cpu0 ..." of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal,
/// and guests, which user and nice already include.
void read_processors(const SystemPaths& paths, const std::vector<int>& processors,
                     NoiseCounters& reading) {
  constexpr int idle = 3;
  constexpr int iowait = 4;
  constexpr int steal = 7;
  const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file(paths.proc / "stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto is_it = [&](int processor) { return name == fmt::format("cpu{}", processor); };
    if (std::ranges::none_of(processors, is_it)) continue;
    double ticks = 0;
    for (int column = 0; column <= steal && words >> ticks; ++column) {
      if (column == idle || column == iowait) continue;
      (column == steal ? reading.stolen_seconds : reading.busy_seconds) += ticks / ticks_a_second;
    }
  }
}

void read_own(NoiseCounters& reading) {
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      reading.own_seconds +=
          static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
    reading.own_page_faults += usage.ru_minflt + usage.ru_majflt;
  }
}

/// Returns the cores' worth of a time that was counted between two readings.
double cores_between(const NoiseCounters& before, const NoiseCounters& after, double seconds) {
  const double passed = after.seconds - before.seconds;
  return passed > 0 ? std::max(0.0, seconds / passed) : 0;
}

double stolen_between(const NoiseCounters& before, const NoiseCounters& after) {
  return cores_between(before, after, after.stolen_seconds - before.stolen_seconds) /
         after.processors;
}

}  // namespace

std::string to_string(const NoiseSource& disturbance) {
  return fmt::format("{}: {}; {}", disturbance.what, disturbance.found, disturbance.remedy);
}

std::vector<NoiseSource> standing_noise_sources(const MachineFacts& facts,
                                                const SystemPaths& paths) {
  std::vector<NoiseSource> found;
  if (facts.governor != "performance" && facts.governor != "none") {
    found.push_back({"governor", facts.governor, "cpupower frequency-set -g performance, as root"});
  }
  if (turbo(paths) == "on") {
    found.push_back({"turbo", "on: the clock rate depends on temperature and on the other cores",
                     "echo 0 > /sys/devices/system/cpu/cpufreq/boost, as root (Intel: echo 1 > "
                     "/sys/devices/system/cpu/intel_pstate/no_turbo)"});
  }
  if (facts.huge_pages == "never" || facts.huge_pages == "unknown") {
    found.push_back({"huge pages", facts.huge_pages,
                     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root"});
  }
  const auto limit = limited_cores(paths);
  if (limit && *limit < facts.available_cores) {
    found.push_back(
        {"container",
         fmt::format("limited to {:.2f} of {} cores' time", *limit, facts.available_cores),
         "give it whole cores (cpuset) instead of a share of time"});
  }
  return found;
}

std::vector<NominalSetting> nominal_settings(const MachineFacts& facts, const SystemPaths& paths) {
  const std::string turbo_state = turbo(paths);
  const auto limit = limited_cores(paths);
  return {
      {"governor",
       facts.governor == "none" ? "none: the kernel sets no frequency" : facts.governor},
      {"turbo", turbo_state.empty() ? "unknown: the kernel does not say" : turbo_state},
      {"huge pages", facts.huge_pages},
      {"container", limit ? fmt::format("{:.2f} cores' time", *limit) : "no limit on time"},
      {"temperature", thermal_throttles(paths) ? "not throttled in this second"
                                               : "unknown: the kernel does not count throttling"},
      {"stolen time", "none"},
      {"other programs", "none that are busy"}};
}

NoiseCounters read_processor_times(const SystemPaths& paths, const std::vector<int>& processors) {
  NoiseCounters reading;
  reading.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  reading.processors = std::max(1, static_cast<int>(processors.size()));
  read_own(reading);
  read_processors(paths, processors, reading);
  return reading;
}

NoiseCounters read_noise(const SystemPaths& paths, const std::vector<int>& processors) {
  NoiseCounters reading = read_processor_times(paths, processors);
  reading.limited_periods = limited_periods(paths);
  reading.thermal_throttles = thermal_throttles(paths).value_or(0);
  return reading;
}

std::optional<double> other_processes_cores(const NoiseCounters& before,
                                            const NoiseCounters& after) {
  if (!after.own_are_all) return std::nullopt;
  return cores_between(
      before, after,
      (after.busy_seconds - before.busy_seconds) - (after.own_seconds - before.own_seconds));
}

double disturbing_cores(int processors) { return disturbing_share * processors; }

double disturbing_seconds(std::size_t processors, double seconds) {
  const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double time = static_cast<double>(processors) * seconds;
  const double deviation = 0.5 * std::sqrt(time / ticks_a_second);
  return disturbing_share * time + 3 * deviation;
}

std::vector<NoiseSource> noise_sources_between(const NoiseCounters& before,
                                               const NoiseCounters& after) {
  std::vector<NoiseSource> found;
  if (const double stolen = stolen_between(before, after); stolen > stolen_share) {
    found.push_back({"stolen time",
                     fmt::format("{:.1f}% of the processors went to other guests", 100 * stolen),
                     "use a machine of your own, or compare builds with --interleave"});
  }
  if (const auto throttled = after.thermal_throttles - before.thermal_throttles; throttled > 0) {
    found.push_back({"temperature", fmt::format("throttled {} times", throttled),
                     "mend the cooling, or turn turbo off"});
  }
  if (const auto limited = after.limited_periods - before.limited_periods; limited > 0) {
    found.push_back({"container", fmt::format("stopped by its limit in {} periods", limited),
                     "give it whole cores (cpuset) instead of a share of time"});
  }
  if (const auto others = other_processes_cores(before, after);
      others > disturbing_cores(after.processors)) {
    found.push_back({"other programs", fmt::format("used {:.2f} cores' time", *others),
                     "end them, or measure when they are done"});
  }
  return found;
}

reports::Values noise_figures(const MachineFacts& facts, const NoiseCounters& before,
                              const NoiseCounters& after, const SystemPaths& paths) {
  const auto others = other_processes_cores(before, after);
  const std::string turbo_state = turbo(paths);
  const auto limit = limited_cores(paths);
  return {{"governor", facts.governor},
          {"turbo", turbo_state.empty() ? reports::Value() : reports::Value(turbo_state)},
          {"load_average", facts.load_average.empty() ? 0.0 : facts.load_average.front()},
          {"container_cores", limit ? reports::Value(*limit) : reports::Value()},
          {"stolen_fraction", stolen_between(before, after)},
          {"other_processes_cores", others ? reports::Value(*others) : reports::Value()},
          {"thermal_throttles", after.thermal_throttles - before.thermal_throttles},
          {"container_limited_periods", after.limited_periods - before.limited_periods}};
}

}  // namespace stratagem::bench
