// The grid: the product of the options' values as rows, each brought to one canonical form.
//
// Options that a row's strategy, model or device does not use keep their default, and rows that are
// then equal are measured once, in the place of the first. On CPU every `single` row of a job with
// more than one core is followed by one with all the job's cores on its one device, because that is
// what a user would do instead of a parallel strategy. That row is left out if the process has
// fewer cores and may not oversubscribe them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/selection.h"

namespace stratagem::bench {

/// The most cores of the row that follows a `single` row; 0: no such row.
inline constexpr std::int64_t no_baselines = 0;
inline constexpr std::int64_t any_baseline = std::numeric_limits<std::int64_t>::max();

/// Returns one row or more. Throws std::invalid_argument, in one line, for a wrong value, values
/// that do not fit together, or a user's option that no row uses. Drops a preset's values that do
/// not fit the user's (a split above the batch).
std::vector<Config> make_grid(const Selection& selection, const Catalogue& catalogue,
                              std::int64_t baseline_cores = any_baseline);

/// Returns the rounds that the verdict of a table of `rows` rows needs; a row without a chosen
/// number gets them.
std::int64_t rounds_of_table(std::size_t rows);

}  // namespace stratagem::bench
