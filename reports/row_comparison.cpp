#include "reports/row_comparison.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "reports/statistics.h"

namespace stratagem::reports {
namespace {

/// Returns `single` with the fewest cores that did the same work; nullptr without one.
const RowSummary* baseline_of(const RowSummary& row, const std::vector<RowSummary>& rows) {
  const RowSummary* baseline = nullptr;
  for (const RowSummary& candidate : rows) {
    if (candidate.strategy != "single" || !candidate.ranked()) continue;
    if (candidate.workload != row.workload) continue;
    if (baseline == nullptr || candidate.cores_per_device < baseline->cores_per_device) {
      baseline = &candidate;
    }
  }
  return baseline;
}

/// Returns whether at least two samples of each all agree with the ratio.
bool calm_launches_agree(const RowSummary& row, const RowSummary& other, const Ratio& ratio) {
  const std::vector<double>& faster = ratio.value > 1 ? row.samples_ms : other.samples_ms;
  const std::vector<double>& slower = ratio.value > 1 ? other.samples_ms : row.samples_ms;
  return std::min(faster.size(), slower.size()) >= 2 &&
         std::ranges::max(faster) < std::ranges::min(slower);
}

/// Returns whether the calm launches allow no value that all launches of the rounds allow.
bool calm_launches_contradict(const RowSummary& row, const RowSummary& other, const Ratio& ratio,
                              double confidence) {
  if (std::min(row.samples_ms.size(), other.samples_ms.size()) < 2) return false;
  const Ratio calm = ratio_of(other.samples_ms, row.samples_ms, confidence);
  return calm.high < ratio.low || calm.low > ratio.high;
}

/// Compares a row with the others, each pair with its share of the level.
void compare(RowSummary& row, const std::vector<RowSummary>& rows, double confidence) {
  if (const RowSummary* baseline = baseline_of(row, rows)) row.baseline = baseline->name;
  const bool by_rounds = compared_by_rounds(rows);
  for (const RowSummary& other : rows) {
    if (&other == &row || other.error || other.workload != row.workload) continue;
    const Ratio ratio = by_rounds ? ratio_of(other.rounds_ms, row.rounds_ms, confidence)
                                  : ratio_of(other.samples_ms, row.samples_ms, confidence);
    const bool ranked = row.ranked() && other.ranked();
    const bool disturbed = row.disturbed || other.disturbed ||
                           (by_rounds && calm_launches_contradict(row, other, ratio, confidence));
    if (!disturbed) row.ratios[other.name] = ratio;
    if (!ranked) continue;
    const bool says_little =
        row.tutorial || disturbed || (by_rounds && !calm_launches_agree(row, other, ratio));
    if (says_little || ratio.coverage < confidence || ratio.holds(1)) {
      row.cannot_tell.push_back(other.name);
    }
  }
}

}  // namespace

bool compared_by_rounds(const std::vector<RowSummary>& rows) {
  const auto needed = static_cast<std::size_t>(launches_to_tell_apart(compared_pairs(rows)));
  return std::ranges::any_of(rows, [&](const RowSummary& row) {
    return row.ranked() && row.samples_ms.size() < needed && row.rounds_ms.size() >= needed;
  });
}

std::size_t compared_pairs(const std::vector<RowSummary>& rows) {
  std::size_t pairs = 0;
  std::map<std::string_view, std::size_t> rows_of_workload;
  for (const RowSummary& row : rows) {
    if (row.ranked()) pairs += rows_of_workload[row.workload]++;
  }
  return pairs;
}

void compare_rows(std::vector<RowSummary>& rows) {
  const double confidence = confidence_of_each(compared_pairs(rows));
  for (RowSummary& row : rows) {
    if (!row.error) compare(row, rows, confidence);
  }
}

}  // namespace stratagem::reports
