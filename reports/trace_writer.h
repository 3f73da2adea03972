// Writes timelines as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
// One process is a row or rank, one thread a device; actions of one device that overlap, like
// copies on their own stream, get further threads of that device. An action has the schedule's
// name: "F0 s1" is the forward of micro-batch 0 on stage 1. Chrome's trace event format: complete
// events ("X") with times in microseconds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::reports {

struct TraceProcess {
  std::string name;                   // the row, with its rank if there are several
  std::vector<TimelineEvent> events;  // absolute milliseconds, one clock for all processes
};

std::string trace_json(std::span<const TraceProcess> processes);

/// Returns "F0 s1", "copy activation 3 s0", "optimizer s1". Omits a negative micro-batch.
std::string action_name(const TimelineEvent& event);

/// Writes it whole or not at all. Throws std::system_error if the path cannot be written.
void write_trace(const std::string& path, std::span<const TraceProcess> processes);

}  // namespace stratagem::reports
