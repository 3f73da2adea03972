#include "bench/predict/group_cost_table.h"

#include <chrono>

namespace stratagem::bench {

void GroupCostTable::add(const schedules::Execution& execution) {
  for (const auto& entry : execution) {
    if (schedules::is_in_flight(entry.action.kind)) continue;
    const std::chrono::duration<double, std::milli> took = entry.end->time() - entry.start->time();
    times_[keys_.of(entry.action)].push_back(took.count());
  }
}

void GroupCostTable::add(const std::vector<MemoryMark>& marks) {
  for (std::size_t index = 0; index + 1 < marks.size(); ++index) {
    const std::int64_t held = marks[index].held;
    memory_[keys_.of(marks[index].action)] = {marks[index + 1].held - held,
                                              marks[index + 1].peak - held};
  }
}

std::vector<ActionCost> GroupCostTable::costs() {
  std::vector<ActionCost> all;
  for (auto& [key, times] : times_) {
    const auto& [kind, group, samples, first] = key;
    const auto [kept, most] = memory_[key];
    all.push_back({.kind = kind,
                   .stage = group,
                   .samples = samples,
                   .first = first,
                   .ms = mean_cost(times),
                   .spread = spread_of(times),
                   .kept_bytes = kept,
                   .most_bytes = most});
  }
  return all;
}

}  // namespace stratagem::bench
