#include "strategies/schedules/schedule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "strategies/runtime/first_line.h"
#include "strategies/runtime/parse.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/v_shape.h"

namespace stratagem::schedules {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::array<std::string_view, 7> skipped = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                                     "UNSHARD", "RESHARD", "REDUCE_GRAD"};
const std::map<std::string_view, ActionKind>& passes() {
  static const std::map<std::string_view, ActionKind> known = {{"F", ActionKind::forward},
                                                               {"I", ActionKind::backward_input},
                                                               {"W", ActionKind::backward_weight},
                                                               {"B", ActionKind::backward}};
  return known;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\"");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\"") - first + 1);
}

class Reader {
 public:
  explicit Reader(const std::string& name) { order_.name = name; }

  Schedule read(const std::string& text) {
    for (const std::string_view line : runtime::split(text, '\n')) {
      ++line_;
      if (trimmed(line).empty()) continue;
      order_.actions.emplace_back();
      cell_ = 0;
      for (const std::string_view cell : runtime::split(line, ',')) {
        ++cell_;
        read_cell(trimmed(cell));
      }
    }
    place_stages();
    split_whole_passes();
    return std::move(order_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument(fmt::format("--schedule {}: {}", order_.name, why));
  }

  void read_cell(std::string_view cell) {
    if (!cell.starts_with('(')) return read_action(cell);
    const std::string_view inner = cell.substr(1, cell.find(')') - 1);
    for (const std::string_view part : runtime::split(inner, ';')) read_action(trimmed(part));
  }

  void read_action(std::string_view text) {
    if (text.empty()) return;
    const auto kind_at = text.find_first_not_of(digits);
    const auto number_at = text.find_last_not_of(digits) + 1;
    const auto kind = kind_at == std::string_view::npos ? std::string_view()
                                                        : text.substr(kind_at, number_at - kind_at);
    if (std::ranges::find(skipped, kind) != skipped.end()) return;
    const auto pass = passes().find(kind);
    const auto stage = runtime::number_in<int>(text.substr(0, kind_at));
    const auto micro_batch = runtime::number_in<int>(text.substr(number_at));
    const bool is_action = pass != passes().end() && stage && micro_batch && *stage < most_stages &&
                           *micro_batch < most_micro_batches;
    if (!is_action) {
      refuse(
          fmt::format("line {}, cell {}: \"{}\" is not an action; expected stage, kind (F, B, I "
                      "or W) and micro-batch, such as 0F1",
                      line_, cell_, text.substr(0, 40)));
    }
    order_.actions.back().push_back({pass->second, *stage, *micro_batch});
    order_.micro_batches = std::max(order_.micro_batches, *micro_batch + 1);
    const auto device = static_cast<int>(order_.actions.size()) - 1;
    const auto [known, is_new] = devices_.emplace(*stage, device);
    if (known->second == device) return;
    refuse(fmt::format("line {}, cell {}: stage {} is already on line {} of the ranks", line_,
                       cell_, *stage, known->second + 1));
  }

  /// Every rank must have equally many stages.
  void place_stages() {
    if (devices_.empty()) refuse("has no actions");
    const auto stages = static_cast<int>(devices_.size());
    std::vector<int> of_device(order_.actions.size(), 0);
    for (const auto& [stage, device] : devices_) {
      if (stage != static_cast<int>(order_.device_of_stage.size())) {
        refuse(fmt::format("stage {} is missing", order_.device_of_stage.size()));
      }
      order_.device_of_stage.push_back(device);
      ++of_device[static_cast<std::size_t>(device)];
    }
    const int each = stages / order_.devices();
    const auto other = std::ranges::find_if(of_device, [each](int count) { return count != each; });
    if (other == of_device.end()) return;
    refuse(fmt::format("rank {} has {} of {} stages; expected equally many on each of {} ranks",
                       other - of_device.begin(), *other, stages, order_.devices()));
  }

  /// Where some backward passes have two halves, all have.
  void split_whole_passes() {
    for (const auto& actions : order_.actions) {
      order_.split_backward |= std::ranges::any_of(
          actions, [](const Action& action) { return action.kind == ActionKind::backward_weight; });
    }
    if (!order_.split_backward) return;
    for (auto& actions : order_.actions) {
      std::vector<Action> halves;
      for (const auto& [kind, stage, micro_batch] : actions) {
        const bool whole = kind == ActionKind::backward;
        halves.push_back({whole ? ActionKind::backward_input : kind, stage, micro_batch});
        if (whole) halves.push_back({ActionKind::backward_weight, stage, micro_batch});
      }
      actions = std::move(halves);
    }
  }

  static constexpr int most_stages = 100'000;
  static constexpr int most_micro_batches = 1'000'000;

  Schedule order_;
  std::map<int, int> devices_;  // by stage
  int line_ = 0;
  int cell_ = 0;
};

Schedule of_size(const Schedule& order, const ScheduleSize& size) {
  if (size.devices != order.devices() || size.micro_batches > order.micro_batches) {
    throw std::invalid_argument(fmt::format(
        "--schedule {}: the numbers of devices and micro-batches are {} and {}; "
        "expected {} and at least {}",
        order.name, order.devices(), order.micro_batches, size.devices, size.micro_batches));
  }
  Schedule schedule = order;
  schedule.micro_batches = size.micro_batches;
  for (auto& actions : schedule.actions) {
    std::erase_if(actions, [&size](const Action& action) {
      return action.micro_batch >= size.micro_batches;
    });
  }
  return schedule;
}

}  // namespace

Schedule read_order(const std::string& name, const std::string& text) {
  return Reader(name).read(text);
}

ScheduleEntry read_schedule(const std::string& name, const std::string& text) {
  const Schedule order = read_order(name, text);
  if (const OrderFaults faults = faults_of(order); faults.fault) {
    throw std::invalid_argument(fmt::format("--schedule {}: the order is not valid: {} (device {})",
                                            name, faults.fault->why, faults.fault->device));
  }
  try {
    validate(lower(order));
  } catch (const std::invalid_argument& error) {
    std::string reason = runtime::first_line(error);
    const std::string place = fmt::format("schedule {} ", name);
    if (reason.starts_with(place)) reason = "the order " + reason.substr(place.size());
    if (reason.starts_with("the order deadlocks")) {
      reason += " (CF and CB: copies of an activation and of a gradient from another stage)";
    }
    throw std::invalid_argument(fmt::format("--schedule {}: {}", name, reason));
  }
  return {.name = name,
          .summary = "the order of a file",
          .generate = [order](const ScheduleSize& size) { return of_size(order, size); },
          .ideal_bubble =
              [order](const ScheduleSize& size) { return simulated_bubble(of_size(order, size)); },
          .stages_per_device = order.stages() / order.devices()};
}

}  // namespace stratagem::schedules
