#include "bench/predict/group_cost_table.h"

#include <algorithm>
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
    const MemoryMark& before = marks[index];
    const MemoryMark& after = marks[index + 1];
    const GroupCostKeys::Key key = keys_.of(before.action);
    const auto& [kind, group, samples, first] = key;
    memory_[key].push_back({.kind = kind,
                            .stage = group,
                            .samples = samples,
                            .first = first,
                            .kept = difference(after.held, before.held),
                            .most_bytes = after.peak - sum(before.held)});
  }
}

std::vector<ActionMemory> GroupCostTable::memory() const {
  std::vector<ActionMemory> all;
  for (const auto& [key, seen] : memory_) {
    std::map<BytesByPurpose, std::vector<ActionMemory>> by_change;
    for (const ActionMemory& each : seen) by_change[each.kept].push_back(each);
    const auto usual = std::ranges::max_element(
        by_change, {}, [](const auto& change) { return change.second.size(); });
    all.push_back(*std::ranges::max_element(usual->second, {}, &ActionMemory::most_bytes));
  }
  return all;
}

std::vector<ActionCost> GroupCostTable::costs() {
  std::vector<ActionCost> all;
  for (auto& [key, times] : times_) {
    const auto& [kind, group, samples, first] = key;
    all.push_back({.kind = kind,
                   .stage = group,
                   .samples = samples,
                   .first = first,
                   .ms = mean_cost(times),
                   .spread = spread_of(times)});
  }
  return all;
}

}  // namespace stratagem::bench
