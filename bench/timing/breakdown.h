// Breaks a device's step down, from a measured or simulated timeline.
#pragma once

#include "reports/record.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::bench {

/// Returns milliseconds; see docs/explanation/timing.md. Bubble: the device has nothing to run, and
/// its next computation takes its input from another stage, or the timeline ends while another
/// stage still works. Transfers that ran while the device computed are hidden: counted beside the
/// sum, not in it. Wait: the exposed part of a collective before its last peer had arrived. A
/// timeline of several steps gives their total.
reports::Breakdown breakdown(const schedules::Timeline& timeline, int device, int stages);

/// Returns the record's event for the job's device with this number.
reports::TimelineEvent event_of(const schedules::TimelineEntry& entry, int device);

}  // namespace stratagem::bench
