// Schedules whose devices have two stages, placed as a V: the first device has the first stage and
// the last one.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// The two stages of a device.
struct VPlace {
  int down = 0;  // on the way from the first device to the last
  int up = 0;    // on the way back
};

VPlace v_place(int device, const ScheduleSize& size);

/// Returns a schedule with split backward passes and stages placed as a V, without actions.
Schedule empty_v(std::string name, const ScheduleSize& size);

/// A device's actions, with each kind of each stage in the order of the micro-batches.
class TurnList {
 public:
  explicit TurnList(int micro_batches) : micro_batches_(micro_batches) {}

  using Turn = std::pair<ActionKind, int>;  // a kind and a stage

  /// Appends `turns` `times` times, each with its stage's next micro-batch, and skips turns beyond
  /// the last micro-batch.
  void repeat(int times, std::initializer_list<Turn> turns);

  std::vector<Action> take() { return std::move(actions_); }

 private:
  int micro_batches_;
  std::map<Turn, int> next_;  // the next micro-batch
  std::vector<Action> actions_;
};

/// One micro-batch's passes on all devices, in units of a pass. Every sixth unit the next
/// micro-batch repeats them, so no two of a device's four passes may be a multiple of six apart;
/// its two weight gradients take the units that are left (Qi et al. 2024, "Pipeline Parallelism
/// with Controllable Memory", section 3). Memory grows with the sum of the steps.
struct VBlock {
  /// From a device to the next: F down, F up, I down, I up.
  int forward_down = 1;
  int forward_up = 1;
  int backward_down = 1;
  int backward_up = 1;
  /// From F down to F up on the last device, to I down on the first, to I up on the last.
  int at_foot = 1;
  int at_top = 1;
  int at_end = 1;
};

/// Returns the schedule that repeats the block as early as possible.
Schedule repeat_block(std::string name, const ScheduleSize& size, const VBlock& block);

/// Returns the idle fraction of a steady step in which passes take `times`, by simulation.
double simulated_bubble(const Schedule& compute, const PassTimes& times = {});

}  // namespace stratagem::schedules
