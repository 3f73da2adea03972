// Timeline: each device's actions and their times. The executor measures it and the simulator
// computes it; drawing, summing and comparing do not depend on the source.
#pragma once

#include <vector>

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

/// One action of one device. Times are in milliseconds from the start of the step.
struct TimelineEntry {
  int device = 0;
  schedules::Action action;
  double start_ms = 0;
  double end_ms = 0;
  double peers_ms = 0;  // the arrival of a collective's last peer, or the time when a receive's
                        // data was sent
  bool awaits_device = false;  // idle time before it is a wait for another device
};

struct Timeline {
  std::vector<TimelineEntry> entries;  // by device, in execution order
  double step_ms = 0;                  // length of the step; entries lie within it

  /// Returns the device's entries by their start.
  std::vector<TimelineEntry> of_device(int device) const;
};

}  // namespace stratagem::schedules
