#include "strategies/schedules/timeline.h"

#include <algorithm>

namespace stratagem::schedules {

std::vector<TimelineEntry> Timeline::of_device(int device) const {
  const auto found = std::ranges::equal_range(entries, device, {}, &TimelineEntry::device);
  std::vector<TimelineEntry> own(found.begin(), found.end());
  if (!std::ranges::is_sorted(own, {}, &TimelineEntry::start_ms)) {
    std::ranges::stable_sort(own, {}, &TimelineEntry::start_ms);
  }
  return own;
}

}  // namespace stratagem::schedules
