#include "bench/machine/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace stratagem::bench {
namespace {

namespace fs = std::filesystem;

/// A line of /proc/self/cgroup: "4:cpu,cpuacct:/slice/unit", or "0::/slice/unit" of version 2.
struct Membership {
  std::string controllers;
  fs::path group;  // relative to the hierarchy's root
};

std::vector<Membership> memberships(const SystemPaths& paths) {
  std::vector<Membership> found;
  std::ifstream file(paths.proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1),
                     fs::path(line.substr(second + 1)).relative_path()});
  }
  if (found.empty()) found.push_back({"", ""});
  return found;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

/// Where the hierarchy that limits processor time is mounted; empty for another hierarchy.
fs::path root_of(const Membership& membership, const SystemPaths& paths) {
  const fs::path root = paths.sys / "fs/cgroup";
  std::error_code ignored;
  if (names_cpu(membership.controllers)) return root / membership.controllers;
  if (!membership.controllers.empty()) return {};
  // Beside hierarchies of version 1, that of version 2 has a folder of its own.
  return fs::is_directory(root / "unified", ignored) ? root / "unified" : root;
}

/// The folders of this process's groups, from the innermost to the roots.
std::vector<fs::path> group_folders(const SystemPaths& paths) {
  std::vector<fs::path> folders;
  for (const Membership& membership : memberships(paths)) {
    const fs::path root = root_of(membership, paths);
    if (root.empty()) continue;
    for (fs::path group = membership.group; !group.empty(); group = group.parent_path()) {
      folders.push_back(root / group);
    }
    folders.push_back(root);
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
