#include "reports/console_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/row_summary.h"
#include "reports/short_names.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace stratagem::reports {
namespace {

// Four digits that count, as far as a millisecond has them.
std::string milliseconds(double value) {
  const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return fmt::format("{:.{}f}", value, digits);
}

std::string rate(double value) { return fmt::format("{:.{}f}", value, value >= 1000 ? 0 : 1); }

std::string percent(double fraction) { return fmt::format("{:.1f}%", 100 * fraction); }

std::string memory(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1024.0 * 1024.0);
  return mebibytes >= 1024 ? fmt::format("{:.2f} GiB", mebibytes / 1024)
                           : fmt::format("{:.0f} MiB", mebibytes);
}

std::string speed_up(const RowSummary& row, const std::vector<RowSummary>& rows) {
  const RowSummary* baseline = baseline_of(row, rows);
  return baseline == nullptr ? "" : fmt::format("{:.2f}x", baseline->median_ms / row.median_ms);
}

std::string bubble(const RowSummary& row) {
  if (!row.bubble_measured || !row.bubble_ideal) {
    return "";
  }
  return percent(*row.bubble_measured) + " / " + percent(*row.bubble_ideal);
}

std::string prediction(const RowSummary& row) {
  if (!row.predicted_ms) {
    return "";
  }
  // It stands for a machine with a core for each device.
  if (row.oversubscribed()) return milliseconds(*row.predicted_ms);
  return fmt::format("{} ({:+.1f}%)", milliseconds(*row.predicted_ms),
                     100 * (*row.predicted_ms / row.median_ms - 1));
}

std::string verified(const RowSummary& row) {
  switch (row.verification) {
    case VerificationState::passed:
      return "✓";
    case VerificationState::failed:
      return "failed";
    case VerificationState::not_verified:
      return "not verified";
  }
  return "";
}

std::string marks(const RowSummary& row) {
  std::vector<std::string> words = row.marks;
  if (row.outliers > 0) words.push_back(fmt::format("{} outlying", row.outliers));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<TextColumn> columns_for(const std::vector<RowSummary>& rows,
                                    const std::vector<std::string>& names) {
  const bool calls =
      std::any_of(rows.begin(), rows.end(), [](const RowSummary& row) { return row.tutorial; });
  std::vector<TextColumn> columns = {{"", true, 4, {}},
                                     {"row", false, 10, {}},
                                     {calls ? "call ms" : "step ms", true, 11, {}},
                                     {"interval", true, 6, {}},
                                     {"samples/s", true, 5, {}},
                                     {"tokens/s", true, 5, {}},
                                     {"speed-up", true, 9, {}},
                                     {"bubble / ideal", true, 3, {}},
                                     {"predicted ms", true, 2, {}},
                                     {"MFU", true, 1, {}},
                                     {"memory", true, 0, {}},
                                     {"verified", false, 7, {}},
                                     {"marks", false, 8, {}}};
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const RowSummary& row = rows[index];
    const std::string cells[] = {std::to_string(index + 1),
                                 names[index],
                                 milliseconds(row.median_ms),
                                 row.samples_ms.size() < 2 ? ""
                                                           : milliseconds(row.interval.low) + ".." +
                                                                 milliseconds(row.interval.high),
                                 rate(row.samples_per_second),
                                 row.tokens_per_second ? rate(*row.tokens_per_second) : "",
                                 speed_up(row, rows),
                                 bubble(row),
                                 prediction(row),
                                 row.mfu ? percent(*row.mfu) : "",
                                 row.peak_memory_bytes > 0 ? memory(row.peak_memory_bytes) : "",
                                 verified(row),
                                 marks(row)};
    for (std::size_t column = 0; column < columns.size(); ++column) {
      columns[column].cells.push_back(cells[column]);
    }
  }
  return columns;
}

std::string interval_note(const std::vector<RowSummary>& rows) {
  const auto fewest =
      std::min_element(rows.begin(), rows.end(), [](const RowSummary& a, const RowSummary& b) {
        return a.interval.coverage < b.interval.coverage;
      });
  if (fewest->samples_ms.size() < 2) {
    return "one sample a row: no interval";
  }
  return fmt::format("interval: of the median, {:.1f}% by {} samples, within one run",
                     100 * fewest->interval.coverage, fewest->samples_ms.size());
}

/// Names the rows that scatter widely; empty without one.
std::string spread_note(const std::vector<RowSummary>& rows,
                        const std::vector<std::string>& names) {
  constexpr std::size_t most = 3;
  std::string listed;
  std::size_t count = 0;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (!rows[index].wide() || ++count > most) continue;
    listed +=
        fmt::format("{}{} ({})", count == 1 ? "" : ", ", names[index], percent(rows[index].spread));
  }
  if (count == 0) return "";
  if (count > most) listed += fmt::format(" and {} more", count - most);
  return fmt::format(
      "wide: {}: four fifths of the samples span more than {:.0f}% of the median; smaller "
      "differences are not to be believed\n",
      listed, 100 * wide_spread);
}

struct Sorted {
  std::vector<RowSummary> good;  // fastest first
  std::vector<RowSummary> failed;
};

Sorted sort_rows(const std::vector<Row>& rows) {
  Sorted sorted;
  for (const Row& row : rows) {
    RowSummary summary = summarise(row);
    (summary.error ? sorted.failed : sorted.good).push_back(std::move(summary));
  }
  std::stable_sort(
      sorted.good.begin(), sorted.good.end(),
      [](const RowSummary& a, const RowSummary& b) { return a.median_ms < b.median_ms; });
  return sorted;
}

std::string emphasised(const std::string& text, bool terminal) {
  return terminal ? "\033[1m" + text + "\033[0m" : text;
}

}  // namespace

std::string console_table(const std::vector<Row>& rows, const TableStyle& style) {
  const Sorted sorted = sort_rows(rows);
  std::vector<std::string> names;
  for (const auto* part : {&sorted.good, &sorted.failed}) {
    for (const RowSummary& row : *part) {
      names.push_back(row.name);
    }
  }
  const ShortNames short_names = shorten(names);
  std::string text;
  if (!short_names.shared.empty()) {
    text += short_names.shared + "\n";
  }
  if (!sorted.good.empty()) {
    const std::vector<std::string> good_names(
        short_names.names.begin(),
        short_names.names.begin() + static_cast<std::ptrdiff_t>(sorted.good.size()));
    text += render_table(columns_for(sorted.good, good_names), style.width);
    text += interval_note(sorted.good) + "\n";
    text += spread_note(sorted.good, good_names);
    for (const std::string& line : verdicts(sorted.good, good_names)) {
      text += emphasised(line, style.terminal) + "\n";
    }
  }
  for (std::size_t index = 0; index < sorted.failed.size(); ++index) {
    text += "failed: " + short_names.names[sorted.good.size() + index] + ": " +
            *sorted.failed[index].error + "\n";
  }
  return text;
}

}  // namespace stratagem::reports
