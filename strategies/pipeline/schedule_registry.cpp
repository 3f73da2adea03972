#include "strategies/pipeline/schedule_registry.h"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>
#include <utility>

#include "models/registry_base.h"

namespace stratagem::pipeline {
namespace {

models::Registry<ScheduleEntry>& registry() {
  static models::Registry<ScheduleEntry> schedules("schedule");
  return schedules;
}

}  // namespace

ScheduleRegistration::ScheduleRegistration(ScheduleEntry entry) {
  registry().add(std::move(entry));
}

const ScheduleEntry& find_schedule(std::string_view name) { return registry().find(name); }

std::vector<std::string> schedule_names() { return registry().names(); }

Schedule make_schedule(std::string_view name, int stages, int micro_batches, int ranks) {
  if (stages < 1 || micro_batches < 1) {
    throw std::invalid_argument(
        fmt::format("a schedule needs at least one stage and one micro-batch, not {} and {}",
                    stages, micro_batches));
  }
  Schedule compute = find_schedule(name).generate(stages, micro_batches);
  if (ranks < 1 || compute.devices() % ranks != 0) {
    throw std::invalid_argument(
        fmt::format("{} ranks cannot share {} devices evenly", ranks, compute.devices()));
  }
  for (int device = 0; ranks > 1 && device < compute.devices(); ++device) {
    compute.rank_of_device.push_back(device / (compute.devices() / ranks));
  }
  Schedule schedule = lower(compute);
  validate(schedule);
  return schedule;
}

Schedule empty_schedule(std::string name, int stages, int micro_batches) {
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.micro_batches = micro_batches;
  schedule.device_of_stage.resize(static_cast<std::size_t>(stages));
  std::iota(schedule.device_of_stage.begin(), schedule.device_of_stage.end(), 0);
  schedule.actions.resize(static_cast<std::size_t>(stages));
  return schedule;
}

}  // namespace stratagem::pipeline
