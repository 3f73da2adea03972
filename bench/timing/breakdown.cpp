#include "bench/timing/breakdown.h"

#include <algorithm>

namespace stratagem::bench {
namespace {

using schedules::ActionKind;
using schedules::TimelineEntry;

struct Interval {
  double start = 0;
  double end = 0;
  double length() const { return std::max(0.0, end - start); }
};

Interval overlap(const Interval& a, const Interval& b) {
  return {std::max(a.start, b.start), std::min(a.end, b.end)};
}

/// Accounts for one gap between two computations.
class GapAccount {
 public:
  GapAccount(const std::vector<TimelineEntry>& copies, reports::Breakdown& total)
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
      (schedules::is_receive(copy.action.kind) ? total_.bubble : total_.wait) += waited;
      total_.communication_exposed += part.length() - waited;
    }
    if (idle_is_bubble) total_.bubble += gap.length() - covered;
  }

 private:
  const std::vector<TimelineEntry>& copies_;
  reports::Breakdown& total_;
};

/// A device's actions, split into transfers and computations. A computation that stood still for an
/// exchange counts as its parts before and after.
struct Activity {
  std::vector<TimelineEntry> copies;
  std::vector<TimelineEntry> computations;
  std::vector<TimelineEntry> waits;

  explicit Activity(const std::vector<TimelineEntry>& entries) {
    for (const TimelineEntry& entry : entries) {
      if (schedules::is_wait_inside(entry.action.kind)) waits.push_back(entry);
    }
    for (const TimelineEntry& entry : entries) {
      if (schedules::moves_data(entry.action.kind)) {
        copies.push_back(entry);
      } else {
        add_computation(entry);
      }
    }
  }

  bool stood_still_at(double start) const {
    return std::ranges::any_of(waits, [=](const auto& wait) { return wait.start_ms == start; });
  }

 private:
  void add_computation(TimelineEntry rest) {
    for (const TimelineEntry& wait : waits) {
      if (wait.start_ms < rest.start_ms || wait.end_ms > rest.end_ms) continue;
      TimelineEntry before = rest;
      before.end_ms = wait.start_ms;
      computations.push_back(before);
      rest.start_ms = wait.end_ms;
    }
    computations.push_back(rest);
  }
};

}  // namespace

reports::TimelineEvent event_of(const schedules::TimelineEntry& entry, int device) {
  return {.device = device,
          .kind = std::string(schedules::name(entry.action.kind)),
          .stage = entry.action.stage,
          .micro_batch = entry.action.micro_batch,
          .start_ms = entry.start_ms,
          .end_ms = entry.end_ms};
}

reports::Breakdown breakdown(const schedules::Timeline& timeline, int device, int stages) {
  const Activity activity(timeline.of_device(device));
  const std::vector<TimelineEntry>& copies = activity.copies;
  reports::Breakdown total;
  GapAccount gaps(copies, total);
  double reached = 0;
  for (const TimelineEntry& entry : activity.computations) {
    gaps.add({reached, entry.start_ms}, entry.awaits_device && !activity.stood_still_at(reached));
    const Interval busy{std::max(reached, entry.start_ms), entry.end_ms};
    (schedules::is_update(entry.action.kind) ? total.optimizer : total.compute) += busy.length();
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

}  // namespace stratagem::bench
