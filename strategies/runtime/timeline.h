// Timeline: what every device did and when. Measured by the executor, computed by the simulator,
// and drawn, summed and compared without knowing which of the two it came from.
#pragma once

#include <string_view>
#include <vector>

#include "strategies/pipeline/action.h"

namespace stratagem::runtime {

/// One action of one device. Times are milliseconds from the start of the step.
struct TimelineEntry {
  int device = 0;
  pipeline::Action action;
  double start_ms = 0;
  double end_ms = 0;
  double peers_ms = 0;  // of a collective: when its last peer had come to it; of a receive: when
                        // the data was sent
};

struct Timeline {
  std::vector<TimelineEntry> entries;  // each device's own in the order that it ran them
  double step_ms = 0;                  // length of the step; entries lie within it

  std::vector<TimelineEntry> of_device(int device) const;
};

/// Where a device's step went; see docs/measuring.md. The parts but `communication_hidden` sum up
/// to the step.
struct StepBreakdown {
  double compute = 0;
  double communication_exposed = 0;
  double communication_hidden = 0;
  double wait = 0;
  double bubble = 0;
  double optimizer = 0;
  double input_copy = 0;
  double other = 0;
};

/// Bubble: the device has nothing to run, and its next computation takes its input from another
/// stage, or the timeline ends while another stage still works. Transfers that ran while the device
/// computed are hidden: counted beside the sum, not in it. Wait: the exposed part of a collective
/// before its last peer had come to it. A timeline of several steps gives their
/// total.
StepBreakdown breakdown(const Timeline& timeline, int device, int stages);

}  // namespace stratagem::runtime
