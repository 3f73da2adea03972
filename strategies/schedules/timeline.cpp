#include "strategies/schedules/timeline.h"

#include <algorithm>

namespace stratagem::schedules {

std::vector<TimelineEntry> Timeline::of_device(int device) const {
  const auto begin = std::ranges::lower_bound(entries, device, {}, &TimelineEntry::device);
  const auto end = std::ranges::upper_bound(entries, device, {}, &TimelineEntry::device);
  std::vector<TimelineEntry> own(begin, end);
  if (!std::ranges::is_sorted(own, {}, &TimelineEntry::start_ms)) {
    std::ranges::stable_sort(own, {}, &TimelineEntry::start_ms);
  }
  return own;
}

}  // namespace stratagem::schedules
