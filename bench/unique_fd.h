// The runtime's UniqueFd, which the harness uses everywhere.
#pragma once

#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

using runtime::UniqueFd;

}  // namespace stratagem::bench
