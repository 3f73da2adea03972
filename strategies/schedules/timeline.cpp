#include "strategies/schedules/timeline.h"

#include <algorithm>
#include <iterator>

namespace stratagem::schedules {

std::vector<TimelineEntry> Timeline::of_device(int device) const {
  std::vector<TimelineEntry> own;
  std::ranges::copy_if(entries, std::back_inserter(own),
                       [&](const TimelineEntry& entry) { return entry.device == device; });
  std::ranges::stable_sort(own, {}, &TimelineEntry::start_ms);
  return own;
}

}  // namespace stratagem::schedules
