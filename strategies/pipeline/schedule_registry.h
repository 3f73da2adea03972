// The pipeline schedules by name. Each generator stands in a file of its own and registers itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/pipeline/schedule.h"

namespace stratagem::pipeline {

struct ScheduleEntry {
  std::string name;
  std::string summary;
  /// The compute order for stages >= 1, one on each device, and micro_batches >= 1.
  std::function<Schedule(int stages, int micro_batches)> generate;
  /// Idle fraction of the step with equal stages, free transfers and any ratio of B to F.
  std::function<double(int stages, int micro_batches)> ideal_bubble;
};

/// Throws std::invalid_argument with the choices and the nearest name.
const ScheduleEntry& find_schedule(std::string_view name);
std::vector<std::string> schedule_names();

/// Generates, lowers and validates. The devices are shared out over `ranks` evenly and in order.
/// Throws std::invalid_argument unless the counts are positive and the ranks divide the devices.
Schedule make_schedule(std::string_view name, int stages, int micro_batches, int ranks = 1);

/// One stage a device, nothing scheduled yet: what a generator starts from.
Schedule empty_schedule(std::string name, int stages, int micro_batches);

/// A static object of this type adds an entry before main.
struct ScheduleRegistration {
  explicit ScheduleRegistration(ScheduleEntry entry);
};

}  // namespace stratagem::pipeline
