// Prepares results for publication: removes the names of hosts, users and folders.
#pragma once

#include "reports/record.h"

namespace stratagem::reports {

/// Removes host names and the folders of paths from all texts of the results, and the environment's
/// variables. File names, options, hardware and versions stay.
void anonymise(ResultFile& results);

}  // namespace stratagem::reports
