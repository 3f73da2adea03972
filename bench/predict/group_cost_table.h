// The costs of the actions of a row whose layers have groups, from steps that ran.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "bench/predict/group_cost_keys.h"
#include "bench/predict/memory_watch.h"
#include "bench/predict/stage_costs.h"
#include "strategies/schedules/executor.h"

namespace stratagem::bench {

class GroupCostTable {
 public:
  explicit GroupCostTable(GroupCostKeys keys) : keys_(std::move(keys)) {}

  /// Does not count transfers in flight.
  void add(const schedules::Execution& execution);
  /// Takes the marks of one device; the last one marks the end of the step.
  void add(const std::vector<MemoryMark>& marks);

  std::vector<ActionCost> costs();
  /// Returns the change that each kind of action made most often: another device's thread may free
  /// what it has copied during any action.
  std::vector<ActionMemory> memory() const;

 private:
  GroupCostKeys keys_;
  std::map<GroupCostKeys::Key, std::vector<double>> times_;
  std::map<GroupCostKeys::Key, std::vector<ActionMemory>> memory_;
};

}  // namespace stratagem::bench
