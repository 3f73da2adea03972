#include "bench/machine/control_group.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

namespace stratagem::bench {
namespace {

namespace fs = std::filesystem;

/// Returns the folders of this process's groups up to the roots, wherever a hierarchy may be
/// mounted. Those that do not exist, or limit something else, lack the files that are read.
std::set<fs::path> group_folders(const SystemPaths& paths) {
  const fs::path root = paths.sys / "fs/cgroup";
  std::set<fs::path> folders = {root, root / "unified"};
  std::ifstream file(paths.proc / "self/cgroup");
  // "4:cpu,cpuacct:/slice/unit", or "0::/slice/unit" of version 2
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const fs::path controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty()) folders.insert(root / controllers);
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path(); !group.empty();
         group = group.parent_path()) {
      folders.insert(controllers.empty() ? root / group : root / controllers / group);
      if (controllers.empty()) folders.insert(root / "unified" / group);
    }
  }
  return folders;
}

template <class Number>
std::optional<Number> number_in(const fs::path& path) {
  std::ifstream file(path);
  Number value{};
  return file >> value ? std::optional(value) : std::nullopt;
}

std::optional<double> cores_of_group(const fs::path& folder) {
  double quota = 0;
  double period = 0;
  if (std::ifstream both(folder / "cpu.max"); both.is_open()) {
    if (!(both >> quota >> period)) return std::nullopt;  // "max 100000"
  } else {
    quota = number_in<double>(folder / "cpu.cfs_quota_us").value_or(-1);  // -1: no limit
    period = number_in<double>(folder / "cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

std::int64_t periods_of_group(const fs::path& folder) {
  std::ifstream file(folder / "cpu.stat");
  std::string key;
  std::int64_t value = 0;
  while (file >> key >> value) {
    if (key == "nr_throttled") return value;
  }
  return 0;
}

}  // namespace

std::optional<double> limited_cores(const SystemPaths& paths) {
  std::optional<double> least;
  for (const fs::path& folder : group_folders(paths)) {
    const auto cores = cores_of_group(folder);
    if (cores) least = std::min(least.value_or(*cores), *cores);
  }
  return least;
}

std::int64_t limited_periods(const SystemPaths& paths) {
  std::int64_t periods = 0;
  for (const fs::path& folder : group_folders(paths)) periods += periods_of_group(folder);
  return periods;
}

}  // namespace stratagem::bench
