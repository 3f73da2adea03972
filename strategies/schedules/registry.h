// The pipeline schedules by name. Each generator registers itself in its own file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry/named_entries.h"
#include "strategies/schedules/schedule.h"

namespace stratagem::schedules {

/// The times of F, I and W on any stage, and of a transfer to a neighbour, in any unit.
struct PassTimes {
  double forward = 1;
  double input = 1;
  double weight = 1;
  double transfer = 0;

  double of_micro_batch() const { return forward + input + weight; }
};

/// Parses "2+2+1+0.1": F, I, W, transfer. Throws std::invalid_argument for other text, passes that
/// take no time, and negative or immense times.
PassTimes pass_times_in(std::string_view text);

/// The size of a schedule; the first three numbers are at least 1.
struct ScheduleSize {
  int devices = 1;
  int micro_batches = 1;
  int stages_per_device = 1;  // "virtual stages"; the schedule's number
  // For schedules that are searched:
  PassTimes pass_times = {};
  int live_limit = 0;  // micro-batches held by a device; 0: the schedule's number
};

/// The user chooses the number of stages of a device (--virtual-stages).
inline constexpr int any_number = 0;

struct ScheduleEntry {
  std::string name = {};
  std::string summary = {};
  /// Returns the compute order.
  std::function<Schedule(const ScheduleSize& size)> generate = {};
  /// Returns the idle fraction of one of many steps with equal stages and free transfers, for any
  /// ratio of B to F, or equal F, I and W, or, if it is searched, for `pass_times`. A device that
  /// has ended its part begins the next step.
  std::function<double(const ScheduleSize& size)> ideal_bubble = {};
  int stages_per_device = 1;  // or `any_number`
  bool is_searched = false;   // its order depends on pass_times and live_limit

  bool asks_for_stages() const { return stages_per_device == any_number; }
  /// Returns the stages of a device if the user asks for `asked`.
  int stages_for(int asked) const { return asks_for_stages() ? asked : stages_per_device; }

  static models::Registry<ScheduleEntry>& registry();
};

/// Throws std::invalid_argument with the choices and the nearest name.
const ScheduleEntry& find_schedule(std::string_view name);
std::vector<std::string> schedule_names();

/// Generates, lowers and validates. The devices are split over `ranks` evenly and in order. Throws
/// std::invalid_argument unless the counts are positive, the ranks divide the devices, and the
/// schedule supports this number of stages a device.
Schedule make_schedule(std::string_view name, const ScheduleSize& size, int ranks = 1);
/// Makes it with one stage a device, or the schedule's fixed number.
Schedule make_schedule(std::string_view name, int devices, int micro_batches, int ranks = 1);

/// Returns an empty schedule for a generator. Stage s is on device s modulo devices; a generator
/// may move it.
Schedule empty_schedule(std::string name, const ScheduleSize& size);

}  // namespace stratagem::schedules
