#include "strategies/stages/rank_plan.h"

#include <utility>

#include "strategies/schedules/lowering.h"
#include "strategies/schedules/recomputation.h"

namespace stratagem::stages {
namespace {

void note_receives(const std::vector<schedules::Action>& actions, RankPlan& made) {
  std::map<schedules::ActionKind, schedules::Action> last;
  for (const schedules::Action& action : actions) {
    if (!schedules::is_receive(action.kind)) continue;
    const auto before = last.find(action.kind);
    if (before != last.end()) made.next_receive.insert_or_assign(before->second, action);
    last[action.kind] = action;
  }
}

}  // namespace

RankPlan::RankPlan(StepPlan of, int replica, int first_device, int devices)
    : plan(std::move(of)), recomputed(schedules::recomputed_passes(plan.schedule)) {
  for (const schedules::Slice& slice : plan.partition) {
    if (slice.replica == replica) slices.push_back(slice);
  }
  for (int device = first_device; device < first_device + devices; ++device) {
    note_receives(plan.schedule.actions.at(static_cast<std::size_t>(device)), *this);
    answered.merge(schedules::answered_sends(plan.schedule, device));
  }
}

}  // namespace stratagem::stages
