// How the rows of a table stand to each other.
//
// What is said of two rows holds with 95% for all pairs of rows together. Where some row has too
// few calm launches for that, all launches of the rounds are compared in their place: which of them
// were disturbed is chance, because a round's order is. They then tell two rows apart only where
// the calm ones, at least two of each, all say the same; where the calm ones are missing or say
// something else, no ratio is given either.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/row_summary.h"

namespace stratagem::reports {

/// Whether rows are compared by all launches of the rounds: some ranked row has enough of them, and
/// too few calm ones.
bool compared_by_rounds(const std::vector<RowSummary>& rows);

/// The pairs of rows that are compared with each other: those of one workload.
std::size_t compared_pairs(const std::vector<RowSummary>& rows);

/// Fills in each row's baseline, its ratios to the others and those it cannot be told apart from.
void compare_rows(std::vector<RowSummary>& rows);

}  // namespace stratagem::reports
