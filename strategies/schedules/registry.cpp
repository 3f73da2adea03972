#include "strategies/schedules/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strategies/runtime/parse.h"
#include "strategies/schedules/lowering.h"

namespace stratagem::schedules {

PassTimes pass_times_in(std::string_view text) {
  constexpr double least = 1e-9;
  constexpr double most = 1e9;
  std::vector<double> values;
  for (const std::string_view part : runtime::split(text, '+')) {
    values.push_back(runtime::number_in<double>(part).value_or(-1));
  }
  const auto takes_time = [](double value) { return value >= least && value <= most; };
  const bool are_times = values.size() == 4 &&
                         std::all_of(values.begin(), values.end() - 1, takes_time) &&
                         (values.back() == 0 || takes_time(values.back()));
  if (!are_times) {
    throw std::invalid_argument(fmt::format(
        "--pass-times {}: expected the times of F, I, W and a transfer joined by +, such as "
        "2+2+1+0; each from {:g} to {:g}, or 0 for the transfer",
        text, least, most));
  }
  return {values[0], values[1], values[2], values[3]};
}

models::Registry<ScheduleEntry>& ScheduleEntry::registry() {
  static models::Registry<ScheduleEntry> schedules("schedule");
  return schedules;
}

const ScheduleEntry& find_schedule(std::string_view name) {
  return ScheduleEntry::registry().find(name);
}

std::vector<std::string> schedule_names() { return ScheduleEntry::registry().names(); }

Schedule make_schedule(std::string_view name, const ScheduleSize& size, int ranks) {
  const int stages_per_device = size.stages_per_device;
  if (size.devices < 1 || size.micro_batches < 1 || stages_per_device < 1) {
    throw std::invalid_argument(
        fmt::format("a schedule needs at least one stage and one micro-batch, not {} and {}",
                    size.devices * stages_per_device, size.micro_batches));
  }
  const ScheduleEntry& entry = find_schedule(name);
  if (const int own = entry.stages_for(stages_per_device); own != stages_per_device) {
    throw std::invalid_argument(
        fmt::format("schedule {} has {} stages a device, not {}", name, own, stages_per_device));
  }
  Schedule compute = entry.generate(size);
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

Schedule make_schedule(std::string_view name, int devices, int micro_batches, int ranks) {
  const int stages_per_device = find_schedule(name).stages_for(1);
  return make_schedule(name, ScheduleSize{devices, micro_batches, stages_per_device}, ranks);
}

Schedule empty_schedule(std::string name, const ScheduleSize& size) {
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.micro_batches = size.micro_batches;
  for (int stage = 0; stage < size.devices * size.stages_per_device; ++stage) {
    schedule.device_of_stage.push_back(stage % size.devices);
  }
  schedule.actions.resize(static_cast<std::size_t>(size.devices));
  return schedule;
}

}  // namespace stratagem::schedules
