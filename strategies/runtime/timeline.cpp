#include "strategies/runtime/timeline.h"

#include <algorithm>

namespace stratagem::runtime {
namespace {

using pipeline::ActionKind;

struct Interval {
  double start = 0;
  double end = 0;
  double length() const { return std::max(0.0, end - start); }
};

Interval overlap(const Interval& a, const Interval& b) {
  return {std::max(a.start, b.start), std::min(a.end, b.end)};
}

bool needs_another_stage(const pipeline::Action& action, int stages) {
  if (action.kind == ActionKind::forward) return action.stage > 0;
  return action.kind == ActionKind::backward && action.stage < stages - 1;
}

/// Sorts what happens in one gap between two pieces of computation.
class GapAccount {
 public:
  GapAccount(const std::vector<TimelineEntry>& copies, StepBreakdown& total)
      : copies_(copies), total_(total) {}

  void add(const Interval& gap, bool idle_is_bubble) {
    if (gap.length() <= 0) return;
    double covered = 0;
    double reached = gap.start;  // transfers may overlap one another
    for (const TimelineEntry& copy : copies_) {
      const Interval part = overlap({std::max(reached, copy.start_ms), copy.end_ms}, gap);
      if (part.length() <= 0) continue;
      reached = part.end;
      covered += part.length();
      if (copy.action.kind == ActionKind::copy_input) {
        total_.input_copy += part.length();
        continue;
      }
      const double waited = overlap(part, {copy.start_ms, copy.peers_ms}).length();
      (pipeline::is_receive(copy.action.kind) ? total_.bubble : total_.wait) += waited;
      total_.communication_exposed += part.length() - waited;
    }
    if (idle_is_bubble) total_.bubble += gap.length() - covered;
  }

 private:
  const std::vector<TimelineEntry>& copies_;
  StepBreakdown& total_;
};

}  // namespace

std::vector<TimelineEntry> Timeline::of_device(int device) const {
  std::vector<TimelineEntry> own;
  std::ranges::copy_if(entries, std::back_inserter(own),
                       [&](const TimelineEntry& entry) { return entry.device == device; });
  std::ranges::stable_sort(own, {}, &TimelineEntry::start_ms);
  return own;
}

StepBreakdown breakdown(const Timeline& timeline, int device, int stages) {
  std::vector<TimelineEntry> copies;
  std::vector<TimelineEntry> computations;
  for (const TimelineEntry& entry : timeline.of_device(device)) {
    (moves_data(entry.action.kind) ? copies : computations).push_back(entry);
  }
  StepBreakdown total;
  GapAccount gaps(copies, total);
  double reached = 0;
  for (const TimelineEntry& entry : computations) {
    gaps.add({reached, entry.start_ms}, needs_another_stage(entry.action, stages));
    const Interval busy{std::max(reached, entry.start_ms), entry.end_ms};
    (entry.action.kind == ActionKind::optimizer ? total.optimizer : total.compute) += busy.length();
    for (const TimelineEntry& copy : copies) {
      total.communication_hidden += overlap({copy.start_ms, copy.end_ms}, busy).length();
    }
    reached = std::max(reached, entry.end_ms);
  }
  gaps.add({reached, timeline.step_ms}, stages > 1);
  total.other = timeline.step_ms - total.compute - total.communication_exposed - total.wait -
                total.bubble - total.optimizer - total.input_copy;
  return total;
}

}  // namespace stratagem::runtime
