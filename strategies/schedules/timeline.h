// Timeline: what every device did and when. Measured by the executor, computed by the simulator,
// and drawn, summed and compared without knowing which of the two it came from.
#pragma once

#include <vector>

#include "strategies/schedules/action.h"

namespace stratagem::schedules {

/// One action of one device. Times are milliseconds from the start of the step.
struct TimelineEntry {
  int device = 0;
  schedules::Action action;
  double start_ms = 0;
  double end_ms = 0;
  double peers_ms = 0;  // of a collective: when its last peer had come to it; of a receive: when
                        // the data was sent
  bool awaits_device = false;  // idle time before it is a wait for another device
};

struct Timeline {
  std::vector<TimelineEntry> entries;  // by device, each device's in the order that it ran them
  double step_ms = 0;                  // length of the step; entries lie within it

  /// The device's entries by their start.
  std::vector<TimelineEntry> of_device(int device) const;
};

}  // namespace stratagem::schedules
