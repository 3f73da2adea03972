#include "bench/machine/noise_sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "bench/machine/control_group.h"

namespace stratagem::bench {
namespace {

namespace fs = std::filesystem;

constexpr double quiet_share = 0.1;    // of all processors, before anything is measured
constexpr double busy_share = 0.05;    // of one processor, by another process
constexpr double stolen_share = 0.01;  // of all processors

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> number_in(const fs::path& path) {
  std::istringstream line(text_of(path));
  double value = 0;
  return line >> value ? std::optional(value) : std::nullopt;
}

/// "on", "off", or empty where the kernel does not say.
std::string turbo(const SystemPaths& paths) {
  const fs::path folder = paths.sys / "devices/system/cpu";
  if (const auto boost = number_in(folder / "cpufreq/boost")) return *boost > 0 ? "on" : "off";
  if (const auto none = number_in(folder / "intel_pstate/no_turbo")) {
    return *none > 0 ? "off" : "on";
  }
  return "";
}

/// Of all processors; none where the kernel does not count them.
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

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and guests,
/// which stand in user and nice already.
void read_processors(const SystemPaths& paths, NoiseCounters& reading) {
  constexpr int idle = 3;
  constexpr int iowait = 4;
  constexpr int steal = 7;
  std::istringstream words(text_of(paths.proc / "stat"));
  std::string name;
  words >> name;
  double ticks = 0;
  for (int column = 0; column <= steal && words >> ticks; ++column) {
    reading.processor_ticks += ticks;
    if (column == idle || column == iowait) reading.idle_ticks += ticks;
    if (column == steal) reading.stolen_ticks = ticks;
  }
}

struct Process {
  std::string name;
  int parent = 0;
  double seconds = 0;
};

/// Of /proc/PID/stat: the name stands in parentheses and may hold any sign.
std::optional<Process> process_in(const fs::path& folder) {
  const std::string line = text_of(folder / "stat");
  const auto open = line.find('(');
  const auto close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  std::istringstream words(line.substr(close + 1));
  constexpr int before_times = 9;  // from the process group to the faults of children
  Process process{.name = line.substr(open + 1, close - open - 1)};
  std::string skipped;
  double user = 0;
  double system = 0;
  words >> skipped >> process.parent;
  for (int column = 0; column < before_times; ++column) words >> skipped;
  if (!(words >> user >> system)) return std::nullopt;
  process.seconds = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return process;
}

std::map<int, Process> all_processes(const SystemPaths& paths) {
  std::map<int, Process> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(paths.proc, ignored)) {
    const std::string name = entry.path().filename();
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (auto process = process_in(entry.path())) processes.emplace(number, *std::move(process));
  }
  return processes;
}

/// This process, and whatever it has started.
bool is_own(const std::map<int, Process>& processes, int number) {
  constexpr int deepest = 64;
  for (int depth = 0; depth < deepest; ++depth) {
    if (number == ::getpid()) return true;
    const auto found = processes.find(number);
    if (found == processes.end()) return false;
    number = found->second.parent;
  }
  return false;
}

/// The file that a process runs; empty where that may not be known.
fs::path program_of(const SystemPaths& paths, int number) {
  std::error_code unknown;
  return fs::read_symlink(paths.proc / std::to_string(number) / "exe", unknown);
}

void read_processes(const SystemPaths& paths, NoiseCounters& reading) {
  const std::map<int, Process> processes = all_processes(paths);
  const fs::path own_program = program_of(paths, ::getpid());
  for (const auto& [number, process] : processes) {
    if (is_own(processes, number)) continue;
    if (!own_program.empty() && program_of(paths, number) == own_program) continue;
    reading.process_seconds[number] = process.seconds;
    reading.process_names[number] = process.name;
  }
}

double stolen_between(const NoiseCounters& before, const NoiseCounters& after) {
  const double all = after.processor_ticks - before.processor_ticks;
  return all > 0 ? (after.stolen_ticks - before.stolen_ticks) / all : 0;
}

/// Share of one processor by process number, of those that were there at both readings.
std::vector<std::pair<double, int>> busy_processes(const NoiseCounters& before,
                                                   const NoiseCounters& after) {
  std::vector<std::pair<double, int>> busy;
  const double seconds = after.seconds - before.seconds;
  for (const auto& [number, now] : after.process_seconds) {
    const auto then = before.process_seconds.find(number);
    if (then == before.process_seconds.end() || seconds <= 0) continue;
    const double share = (now - then->second) / seconds;
    if (share > busy_share) busy.emplace_back(share, number);
  }
  std::ranges::sort(busy, std::greater());
  return busy;
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
    found.push_back({"turbo", "on: the clock follows temperature and neighbours",
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
         "give it whole cores (cpuset) in place of a share of time"});
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
      {"another process", "none that is busy"},
      {"load", "processors at rest"}};
}

NoiseCounters read_noise(const SystemPaths& paths) {
  NoiseCounters reading;
  reading.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  read_processors(paths, reading);
  read_processes(paths, reading);
  reading.limited_periods = limited_periods(paths);
  reading.thermal_throttles = thermal_throttles(paths).value_or(0);
  return reading;
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
                     "give it whole cores (cpuset) in place of a share of time"});
  }
  constexpr std::size_t most = 3;
  const auto busy = busy_processes(before, after);
  for (std::size_t index = 0; index < std::min(most, busy.size()); ++index) {
    const auto [share, number] = busy[index];
    found.push_back({"another process",
                     fmt::format("{} (process {}) used {:.0f}% of a core",
                                 after.process_names.at(number), number, 100 * share),
                     "end it, or measure when it is done"});
  }
  return found;
}

std::vector<NoiseSource> noise_sources_at_rest(const NoiseCounters& before,
                                               const NoiseCounters& after) {
  std::vector<NoiseSource> found = noise_sources_between(before, after);
  const double all = after.processor_ticks - before.processor_ticks;
  const double busy = all > 0 ? 1 - (after.idle_ticks - before.idle_ticks) / all : 0;
  if (busy > quiet_share) {
    found.push_back(
        {"load", fmt::format("processors {:.0f}% busy before anything was measured", 100 * busy),
         "measure on a quiet machine: other programs slow the devices down"});
  }
  return found;
}

reports::Values noise_figures(const MachineFacts& facts, const NoiseCounters& before,
                              const NoiseCounters& after, const SystemPaths& paths) {
  const auto busy = busy_processes(before, after);
  double others = 0;
  for (const auto& [share, number] : busy) others += share;
  const std::string turbo_state = turbo(paths);
  const auto limit = limited_cores(paths);
  return {{"governor", facts.governor},
          {"turbo", turbo_state.empty() ? reports::Value() : reports::Value(turbo_state)},
          {"load_average", facts.load_average.empty() ? 0.0 : facts.load_average.front()},
          {"container_cores", limit ? reports::Value(*limit) : reports::Value()},
          {"stolen_fraction", stolen_between(before, after)},
          {"other_processes_cores", others},
          {"thermal_throttles", after.thermal_throttles - before.thermal_throttles},
          {"container_limited_periods", after.limited_periods - before.limited_periods}};
}

}  // namespace stratagem::bench
