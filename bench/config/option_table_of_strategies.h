// The part of the table of options that says how strategies cut, replicate and share their work.
#pragma once

#include <vector>

#include "bench/config/options.h"

namespace stratagem::bench {

std::vector<Option> options_of_strategies();

}  // namespace stratagem::bench
