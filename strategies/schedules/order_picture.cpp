#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "strategies/schedules/action_set.h"
#include "strategies/schedules/lowering.h"
#include "strategies/schedules/schedule_file.h"

namespace stratagem::schedules {
namespace {

constexpr std::string_view cut = "...";  // stands for passes that are not shown

/// Returns the first fault of an order, to which lower() has not added anything yet.
std::optional<Fault> fault_of_passes(const Schedule& order) {
  Schedule passes = order;
  for (int stage = 0; stage < order.stages(); ++stage) passes.not_updated.insert(stage);
  return first_fault(passes);
}

/// Returns the first pass that `action`, a pass or a copy, waits for.
std::optional<Action> awaited_by(const Schedule& lowered, const Action& action,
                                 const ActionSet& visited) {
  std::optional<Action> awaited;
  all_predecessors(lowered, action, [&](const Action& needed) {
    if (visited.contains(needed)) return true;
    awaited = needed;
    return false;
  });
  return awaited;
}

bool has(const std::vector<Action>& actions, const Action& action) {
  return std::ranges::find(actions, action) != actions.end();
}

class Picture {
 public:
  Picture(const Schedule& order, const OrderFaults& faults, int width)
      : order_(order), faults_(faults) {
    for (const auto& actions : order.actions) {
      for (const Action& action : actions) label_ = std::max(label_, to_string(action).size());
    }
    digits_ = std::to_string(order.devices() - 1).size();
    const std::size_t head = std::string_view("device  |").size() + digits_;
    const auto columns = static_cast<std::size_t>(std::max(width, 0));
    constexpr std::size_t least = 3;  // a pass between two cuts
    room_ = std::max(least, columns > head ? (columns - head) / cell_columns() : 0);
  }

  std::string text() const {
    std::string text;
    for (std::size_t device = 0; device < order_.actions.size(); ++device) {
      text += line_of(device) + "\n";
    }
    if (faults_.fault) {
      text += fmt::format("device {}: {}\n", faults_.fault->device, faults_.fault->why);
    }
    for (std::size_t device = 0; device < order_.actions.size(); ++device) {
      if (faults_.awaited[device]) text += wait_of(device, *faults_.awaited[device]) + "\n";
    }
    return text;
  }

 private:
  std::size_t cell_columns() const { return label_ + std::string_view("[]").size(); }

  bool is_fault(std::size_t device, std::size_t place) const {
    return faults_.fault && faults_.fault->place == place &&
           faults_.fault->device == static_cast<int>(device);
  }

  bool is_marked(std::size_t device, std::size_t place) const {
    return is_fault(device, place) || (faults_.awaited[device] && faults_.done[device] == place);
  }

  std::string line_of(std::size_t device) const {
    const auto& actions = order_.actions[device];
    std::size_t first = 0;
    std::size_t shown = actions.size();
    if (shown > room_) {
      std::size_t mark = 0;
      while (mark < actions.size() && !is_marked(device, mark)) ++mark;
      shown = room_ - 2;
      first = std::min(mark - std::min(mark, shown / 2), actions.size() - shown);
    }
    std::string text = fmt::format("device {:>{}} |", device, digits_);
    if (first > 0) text += cell(cut, false);
    for (std::size_t place = first; place < first + shown; ++place) {
      text += cell(to_string(actions[place]), is_marked(device, place));
    }
    if (first + shown < actions.size()) text += cell(cut, false);
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }

  std::string cell(std::string_view label, bool marked) const {
    const std::string text = marked ? fmt::format("[{}]", label) : fmt::format(" {}", label);
    return fmt::format("{:<{}}", text, cell_columns());
  }

  std::string wait_of(std::size_t device, const Action& awaited) const {
    const auto owner =
        static_cast<std::size_t>(order_.device_of_stage[static_cast<std::size_t>(awaited.stage)]);
    const auto stop = [&](std::size_t at) { return order_.actions[at][faults_.done[at]]; };
    std::string where = owner == device ? "" : fmt::format(" on device {}", owner);
    if (!has(order_.actions[owner], awaited)) {
      where += ", which is not in the order";
    } else if (owner == device) {
      where += ", which comes after it";
    } else if (stop(owner) == awaited) {
      where += ", which waits, too";
    } else {
      where += fmt::format(", which comes after {}", to_string(stop(owner)));
    }
    return fmt::format("device {} waits at {} for {}{}", device, to_string(stop(device)),
                       to_string(awaited), where);
  }

  const Schedule& order_;
  const OrderFaults& faults_;
  std::size_t label_ = cut.size();  // the columns of the longest label
  std::size_t digits_ = 1;          // those of a device's number
  std::size_t room_ = 1;            // the number of cells on a line
};

}  // namespace

bool OrderFaults::is_valid() const {
  return !fault && std::ranges::none_of(awaited, [](const auto& pass) { return bool(pass); });
}

OrderFaults faults_of(const Schedule& order) {
  OrderFaults faults{.fault = fault_of_passes(order)};
  const Schedule lowered = lower(order);
  ActionSet visited(lowered.actions);
  const auto next =
      visit_until_stuck(lowered, [&visited](int, const Action& action) { visited.insert(action); });
  for (std::size_t device = 0; device < next.size(); ++device) {
    const auto& actions = lowered.actions[device];
    const auto stop = actions.begin() + static_cast<std::ptrdiff_t>(next[device]);
    const auto done = std::count_if(actions.begin(), stop,
                                    [](const Action& action) { return is_pass(action.kind); });
    faults.done.push_back(static_cast<std::size_t>(done));
    const bool waits = faults.done.back() < order.actions[device].size();
    faults.awaited.push_back(waits ? awaited_by(lowered, *stop, visited) : std::nullopt);
  }
  return faults;
}

std::string order_picture(const Schedule& order, const OrderFaults& faults, int width) {
  return Picture(order, faults, width).text();
}

}  // namespace stratagem::schedules
