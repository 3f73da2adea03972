// Timelines as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
// One process a row or rank, one thread a device; actions of one device that overlap, as copies
// do on their own stream, stand on further threads of that device. An action is named like the
// schedule names it: "F0 s1" is the forward of micro-batch 0 on stage 1. Chrome's trace event
// format: complete events ("X") with times in microseconds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::reports {

struct TraceProcess {
  std::string name;                   // the row, with its rank where there are several
  std::vector<TimelineEvent> events;  // absolute milliseconds, one clock for all processes
};

std::string trace_json(std::span<const TraceProcess> processes);

/// "F0 s1", "copy activation 3 s0", "optimizer s1". A negative micro-batch is not named.
std::string action_name(const TimelineEvent& event);

/// Whole or not at all. Throws std::system_error when the path cannot be written.
void write_trace(const std::string& path, std::span<const TraceProcess> processes);

}  // namespace stratagem::reports
