// The grid: the product of the options' values as rows, each brought to one canonical form.
//
// Options that a row's strategy, model or device does not use keep their default in it, and rows
// that are equal then are measured once, in the place of the first. On CPU every `single` row of a
// job with more than one core may be followed by one with all the job's cores on its one device,
// because that is what a user would do instead of a parallel strategy; where the process may use so
// many, or more than it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/selection.h"

namespace stratagem::bench {

/// The most cores that a row may have which follows a `single` row: 0, and there is none.
inline constexpr std::int64_t no_baselines = 0;
inline constexpr std::int64_t any_baseline = std::numeric_limits<std::int64_t>::max();

/// Never empty. Throws std::invalid_argument, in one line: a value that is wrong, values that do
/// not fit together, an option of the user's that no row uses. A preset's values that do not fit
/// the user's (a split above the batch) fall out instead.
std::vector<Config> make_grid(const Selection& selection, const Catalogue& catalogue,
                              std::int64_t baseline_cores = any_baseline);

/// Rounds that the verdict of a table of so many rows needs: what a row gets for which no number
/// was chosen.
std::int64_t rounds_of_table(std::size_t rows);

}  // namespace stratagem::bench
