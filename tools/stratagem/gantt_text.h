// Draws a timeline as lines of text, one a device, for a terminal:
//
//   device 0 |F0==F1==........B0######B1######o|
//   device 1 |....F0==B0######F1==B1######....o|
#pragma once

#include <string>

#include "strategies/schedules/timeline.h"

namespace stratagem::tools {

/// Returns lines of at most `width` columns and a legend. A character shows what fills most of its
/// time; a computation hides the copies that run beside it. Buckets of gradients get a line of
/// their own. Of more than 40 devices 40 are drawn, and a line at the end gives their number.
std::string gantt_text(const schedules::Timeline& timeline, int devices, int width);

}  // namespace stratagem::tools
