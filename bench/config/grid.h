// The grid: the product of the options' values as rows, each brought to one canonical form.
//
// Options that a row's strategy, model or device does not use keep their default in it, and rows
// that are equal then are measured once, in the place of the first. On CPU every `single` row of a
// job with more than one core may be followed by one with all the job's cores on its one device,
// because that is what a user would do instead of a parallel strategy.
#pragma once

#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/selection.h"

namespace stratagem::bench {

/// What a `single` row of a job with more than one core is followed by.
enum class Baselines { none, every_core };

/// Never empty. Throws std::invalid_argument, in one line: a value that is wrong, values that do
/// not fit together, an option of the user's that no row uses. A preset's values that do not fit
/// the user's (a split above the batch) fall out instead.
std::vector<Config> make_grid(const Selection& selection, const Catalogue& catalogue,
                              Baselines baselines = Baselines::every_core);

}  // namespace stratagem::bench
