// A timeline as lines of text, one a device, to be read in a terminal:
//
//   device 0 |F0==F1==........B0######B1######o|
//   device 1 |....F0==B0######F1==B1######....o|
#pragma once

#include <string>

#include "strategies/schedules/timeline.h"

namespace stratagem::tools {

/// Lines of at most `width` columns and a legend. An action shorter than a column may hide behind
/// its neighbour; actions of which copies run aside are drawn over them. Buckets of gradients get a
/// line of their own.
std::string gantt_text(const schedules::Timeline& timeline, int devices, int width);

}  // namespace stratagem::tools
