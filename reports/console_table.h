// The table that a run ends with, fastest first, with a sentence that names the winner.
//
//   resnet50/batch:48/image:128/schedule:1f1b
//      row                          step ms   interval    samples/s  speed-up  ...
//   1  pipeline/devices:2/split:12     1592  1583..1602       30.2     1.36x  ...
//
// If the intervals of the fastest rows overlap, it reports that it cannot distinguish them. Failed
// rows come last, each with its error in one line.
#pragma once

#include <string>
#include <vector>

#include "reports/record.h"

namespace stratagem::reports {

struct TableStyle {
  int width = 0;          // columns of the terminal; 0: unlimited, for files and pipes
  bool terminal = false;  // emphasis by escape sequences
};

std::string console_table(const std::vector<Row>& rows, const TableStyle& style);

}  // namespace stratagem::reports
