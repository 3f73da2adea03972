// Compares the rows of a table with each other.
//
// A statement about two rows holds with 95% for all pairs of rows together. If some row has too few
// calm launches for that, all launches of the rounds are compared instead: chance decides which of
// them were disturbed, because a round's order is random. They then distinguish two rows only if
// the calm ones, at least two of each, all agree; if the calm ones are missing or contradict them,
// no ratio is given either.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/row_summary.h"

namespace stratagem::reports {

/// Returns whether rows are compared by all launches of the rounds: some ranked row has enough of
/// them, and too few calm ones.
bool compared_by_rounds(const std::vector<RowSummary>& rows);

/// Returns the number of pairs of rows that are compared: those of one workload.
std::size_t compared_pairs(const std::vector<RowSummary>& rows);

/// Fills in each row's baseline, its ratios to the others and those indistinguishable from it.
void compare_rows(std::vector<RowSummary>& rows);

}  // namespace stratagem::reports
