#include "bench/config/core_demand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "bench/config/placement.h"

namespace stratagem::bench {
namespace {

std::size_t cores_needed(const Config& config, std::int64_t devices) {
  if (config.device != "cpu") return 0;
  const std::int64_t slots =
      config.device_ids.empty() ? devices : std::ranges::max(config.device_ids) + 1;
  return static_cast<std::size_t>(slots * config.cores_per_device);
}

std::size_t cores_needed(const Config& config) {
  return cores_needed(config, placement_of(config).devices());
}

std::string counted(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::vector<int> cores_of(const Config& config, const std::vector<int>& available) {
  const std::size_t count = std::min(cores_needed(config), available.size());
  return {available.begin(), available.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<int> cores_of(const std::vector<Config>& rows, const std::vector<int>& available) {
  std::set<int> cores;
  for (const Config& row : rows) {
    const std::vector<int> own = cores_of(row, available);
    cores.insert(own.begin(), own.end());
  }
  return {cores.begin(), cores.end()};
}

std::vector<int> cores_of_device(const Config& config, const std::vector<int>& available,
                                 std::int64_t device, std::int64_t usual_id) {
  const auto position = static_cast<std::size_t>(device);
  const std::int64_t id =
      position < config.device_ids.size() ? config.device_ids[position] : usual_id;
  auto next = static_cast<std::size_t>(id * config.cores_per_device);
  std::vector<int> cores;
  for (std::int64_t core = 0; core < config.cores_per_device; ++core) {
    cores.push_back(available[next++ % available.size()]);
  }
  return cores;
}

void leave_out_usual_ids(Config& config) {
  std::int64_t usual = 0;
  const auto is_usual = [&usual](std::int64_t id) { return id == usual++; };
  if (std::ranges::all_of(config.device_ids, is_usual)) config.device_ids.clear();
}

void require_cores(const Config& config, std::size_t available) {
  require_cores(config, available, placement_of(config).devices());
}

void require_cores(const Config& config, std::size_t available, std::int64_t devices) {
  const std::size_t needed = cores_needed(config, devices);
  if (needed <= available || config.oversubscribe) return;
  const auto per_device = static_cast<std::size_t>(config.cores_per_device);
  const std::size_t fitting = available / per_device;
  const bool has_ids = !config.device_ids.empty();
  const std::string given = has_ids
                                ? fmt::format("--device-ids {}", fmt::join(config.device_ids, "+"))
                                : fmt::format("--devices {}", needed / per_device);
  const std::string fewer = fmt::format("{} {}", has_ids ? "indices below" : "--devices", fitting);
  const std::string remedy = fitting > 0 ? fewer : fmt::format("--cores-per-device {}", available);
  throw std::invalid_argument(fmt::format(
      "{} with {} each needs {} and {} available; use {}, or --oversubscribe (the row is marked "
      "and not ranked)",
      given, counted(per_device, "core"), counted(needed, "core"),
      available == 1 ? "1 is" : fmt::format("{} are", available), remedy));
}

std::vector<std::string> marks_of(const Config& config, std::size_t available_cores) {
  std::vector<std::string> marks;
  if (cores_needed(config) > available_cores) marks.emplace_back("oversubscribed");
  const std::set<std::int64_t> distinct(config.device_ids.begin(), config.device_ids.end());
  if (distinct.size() < config.device_ids.size()) marks.emplace_back("shared");
  if (config.straggler != "none") marks.emplace_back("straggler");
  return marks;
}

std::string tf32_note(const Config& config, bool has_convolutions) {
  if (config.device != "cuda" || config.dtype != "float32") return "";
  if (config.tf32) {
    return "matrix products run in TF32; PyTorch's default is float32";
  }
  if (!has_convolutions) return "";
  return "convolutions run in float32; PyTorch's default is TF32, which is faster; --tf32 on "
         "enables it, also for matrix products";
}

}  // namespace stratagem::bench
