// The sentence below the table: who is fastest, or that the samples cannot tell.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/row_summary.h"

namespace stratagem::reports {

/// One line for each workload among `rows`, which stand fastest first, and a second one for the
/// strategies over several devices where `single` comes first; `names` are the rows' names as
/// shown. Failed and oversubscribed rows take no part, and a row alone wins nothing.
std::vector<std::string> verdicts(const std::vector<RowSummary>& rows,
                                  std::span<const std::string> names);

}  // namespace stratagem::reports
