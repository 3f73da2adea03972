// The sentence below the table: the fastest row, or the rows that samples cannot distinguish.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/row_summary.h"

namespace stratagem::reports {

/// Returns one line for each workload among `rows`, which are sorted fastest first, and a second
/// one for the strategies over several devices if `single` comes first; `names` are the rows' names
/// as shown. Failed and oversubscribed rows take no part, and a single row wins nothing.
std::vector<std::string> verdicts(const std::vector<RowSummary>& rows,
                                  std::span<const std::string> names);

}  // namespace stratagem::reports
