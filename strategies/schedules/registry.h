// The pipeline schedules by name. Each generator stands in a file of its own and registers itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry/named_entries.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// All at least 1.
struct ScheduleSize {
  int devices = 1;
  int micro_batches = 1;
  int stages_per_device = 1;  // "virtual stages"; as many as the schedule has
};

/// Of stages of a device: the user says how many (--virtual-stages).
inline constexpr int any_number = 0;

struct ScheduleEntry {
  std::string name = {};
  std::string summary = {};
  /// The compute order.
  std::function<Schedule(const ScheduleSize& size)> generate = {};
  /// Idle fraction of one of many steps with equal stages and free transfers, for any ratio of B to
  /// F, or for F, I and W of one length. A device that has ended its part goes on to the next step.
  std::function<double(const ScheduleSize& size)> ideal_bubble = {};
  int stages_per_device = 1;  // or `any_number`

  bool asks_for_stages() const { return stages_per_device == any_number; }
  /// How many stages a device has where the user asks for `asked`.
  int stages_for(int asked) const { return asks_for_stages() ? asked : stages_per_device; }

  static models::Registry<ScheduleEntry>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const ScheduleEntry& find_schedule(std::string_view name);
std::vector<std::string> schedule_names();

/// Generates, lowers and validates. The devices are split over `ranks` evenly and in order.
/// Throws std::invalid_argument unless the counts are positive, the ranks divide the devices, and
/// the schedule can have so many stages a device.
Schedule make_schedule(std::string_view name, const ScheduleSize& size, int ranks = 1);
/// With one stage a device, or as many as the schedule always has.
Schedule make_schedule(std::string_view name, int devices, int micro_batches, int ranks = 1);

/// Nothing scheduled yet: what a generator starts from. Stage s lives on device s modulo
/// devices; a generator may place it elsewhere.
Schedule empty_schedule(std::string name, const ScheduleSize& size);

}  // namespace stratagem::schedules
