// Reads a results file back into the record it was written from: resuming a grid, drawing its
// table again.
#pragma once

#include <string>

#include "reports/record.h"

namespace stratagem::reports {

/// Throws std::system_error when the file cannot be read, std::invalid_argument, in one line that
/// names file and place, when it is not a results file of this schema.
ResultFile read_results(const std::string& path);

}  // namespace stratagem::reports
