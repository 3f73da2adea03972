#include "reports/console_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "reports/row_comparison.h"
#include "reports/row_summary.h"
#include "reports/short_names.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace stratagem::reports {
namespace {

// Prints four significant digits, with three decimals at most.
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

std::string speed_up(const RowSummary& row) {
  if (row.baseline == row.name) return "1.00x";
  return row.speed_up() == nullptr ? "" : fmt::format("{:.2f}x", row.speed_up()->value);
}

std::string bubble(const RowSummary& row) {
  if (!row.bubble.measured || !row.bubble.ideal) return "";
  return percent(*row.bubble.measured) + " / " + percent(*row.bubble.ideal);
}

std::string prediction(const RowSummary& row) {
  if (!row.predicted_ms) return "";
  std::string text = milliseconds(*row.predicted_ms);
  if (row.prediction_error) text += fmt::format(" ({:+.1f}%)", 100 * *row.prediction_error);
  if (row.tutorial) text += " (one step)";
  return text;
}

std::string verified(const RowSummary& row) {
  return row.verification == "passed" ? "✓" : row.verification;
}

std::string proven(const RowSummary& row) { return row.proven ? "✓" : ""; }

std::string marks(const RowSummary& row) {
  std::vector<std::string> words = row.marks;
  if (!row.outliers.empty()) words.push_back(fmt::format("{} outlying", row.outliers.size()));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string interval(const RowSummary& row) {
  if (row.samples_ms.size() < 2) return "";
  return milliseconds(row.interval_ms->low) + ".." + milliseconds(row.interval_ms->high);
}

template <class T, class Text>
std::string text_of(const std::optional<T>& value, Text text) {
  return value ? text(*value) : "";
}

struct Column {
  std::string header;
  bool right_aligned;
  int importance;
  std::function<std::string(const RowSummary&)> text;
};

/// Returns the columns beside place and name, one line each.
std::vector<Column> figures(const std::string& time_header) {
  using Row = const RowSummary&;
  return {{time_header, true, 11, [](Row row) { return milliseconds(row.time_ms()); }},
          {"interval", true, 6, interval},
          {"samples/s", true, 5, [](Row row) { return text_of(row.samples_per_second, rate); }},
          {"tokens/s", true, 5, [](Row row) { return text_of(row.tokens_per_second, rate); }},
          {"speed-up", true, 9, speed_up},
          {"bubble / ideal", true, 3, bubble},
          {"predicted ms", true, 2, prediction},
          {"MFU", true, 1, [](Row row) { return text_of(row.mfu, percent); }},
          {"HFU", true, 1, [](Row row) { return text_of(row.hfu, percent); }},
          {"memory", true, 0, [](Row row) { return text_of(row.peak_memory_bytes, memory); }},
          {"verified", false, 7, verified},
          {"proven", false, 7, proven},
          {"marks", false, 8, marks}};
}

std::vector<TextColumn> columns_for(const std::vector<RowSummary>& rows,
                                    const std::vector<std::string>& names) {
  std::vector<TextColumn> columns = {{"", true, 4, {}}, {"row", false, 10, names}};
  for (std::size_t place = 1; place <= rows.size(); ++place) {
    columns.front().cells.push_back(std::to_string(place));
  }
  const bool calls = std::ranges::any_of(rows, &RowSummary::tutorial);
  for (const Column& figure : figures(calls ? "call ms" : "step ms")) {
    columns.push_back({figure.header, figure.right_aligned, figure.importance, {}});
    for (const RowSummary& row : rows) columns.back().cells.push_back(figure.text(row));
  }
  return columns;
}

std::string interval_note(const std::vector<RowSummary>& rows) {
  const auto fewest =
      std::min_element(rows.begin(), rows.end(), [](const RowSummary& a, const RowSummary& b) {
        return a.interval_ms->coverage < b.interval_ms->coverage;
      });
  const std::size_t pairs = compared_pairs(rows);
  const std::string together =
      pairs > 1 && !fewest->tutorial
          ? fmt::format("; differences are significant at 95% for all {} pairs together", pairs)
          : "";
  if (fewest->samples_ms.size() < 2) return "one launch a row: no interval" + together;
  return fmt::format(
      "interval: {:.1f}% confidence interval of the median, from {} {} of this run{}",
      100 * fewest->interval_ms->coverage, fewest->samples_ms.size(),
      fewest->tutorial ? "calls" : "launches", together);
}

/// Returns the first few of them: "a, b, c and 4 more".
std::string first_of(const std::vector<std::string>& all) {
  constexpr std::size_t most = 3;
  const std::span<const std::string> first(all.data(), std::min(all.size(), most));
  const std::size_t others = all.size() - first.size();
  return fmt::format("{}", fmt::join(first, ", ")) +
         (others == 0 ? "" : fmt::format(" and {} more", others));
}

/// Names the rows that scatter widely; empty without one.
std::string spread_note(const std::vector<RowSummary>& rows,
                        const std::vector<std::string>& names) {
  std::vector<std::string> wide;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    if (!rows[index].wide) continue;
    wide.push_back(fmt::format("{} ({})", names[index], percent(rows[index].spread)));
  }
  if (wide.empty()) return "";
  return fmt::format(
      "wide: {}: the middle four fifths of the {} span more than {:.0f}% of the median; smaller "
      "differences are not reliable\n",
      first_of(wide), rows.front().tutorial ? "calls" : "launches", 100 * wide_spread);
}

std::string ago(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s ago", seconds);
  return seconds < 7200 ? fmt::format("{:.0f} min ago", seconds / 60)
                        : fmt::format("{:.0f} h ago", seconds / 3600);
}

/// Describes the basis of the predictions, and names those not to be trusted; empty without one.
std::string prediction_note(const std::vector<Row>& rows, const std::vector<RowSummary>& good,
                            const std::vector<std::string>& names) {
  std::optional<double> oldest_s;
  double lowest = 0;
  double highest = 0;
  std::vector<std::string> doubts;
  for (std::size_t index = 0; index < good.size(); ++index) {
    const Row& row = *std::ranges::find(rows, good[index].name, &Row::name);
    if (row.repetitions.empty() || !row.repetitions.front().predicted_from) continue;
    const PredictionBasis& basis = *row.repetitions.front().predicted_from;
    oldest_s = std::max(oldest_s.value_or(0), basis.age_s);
    if (const auto& step = good[index].predicted_ms; step && basis.low_ms && basis.high_ms) {
      lowest = std::min(lowest, *basis.low_ms / *step - 1);
      highest = std::max(highest, *basis.high_ms / *step - 1);
    }
    if (!basis.doubt.empty()) doubts.push_back(fmt::format("{} ({})", names[index], basis.doubt));
  }
  if (!oldest_s) return "";
  const std::string spread =
      lowest < 0 || highest > 0
          ? fmt::format(", quartiles {:+.1f}% to {:+.1f}%", 100 * lowest, 100 * highest)
          : "";
  return fmt::format("predicted: from stage costs measured {}{}{}{}\n",
                     *oldest_s > 0 ? ago(*oldest_s) : "in this run", spread,
                     doubts.empty() ? "" : "; unreliable: ", fmt::join(doubts, ", "));
}

/// Names the rows in which ATen computed instead of our kernels; empty without one.
std::string kernel_note(const std::vector<Row>& rows, const std::vector<RowSummary>& good,
                        const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> found;  // names by kernels
  for (std::size_t index = 0; index < good.size(); ++index) {
    if (std::ranges::count(good[index].marks, "aten_kernels") == 0) continue;
    const Row& row = *std::ranges::find(rows, good[index].name, &Row::name);
    found[row.repetitions.front().kernels.value_or("")].push_back(names[index]);
  }
  std::string text;
  for (const auto& [kernels, of] : found) {
    text += fmt::format("aten_kernels: {}: {}\n", first_of(of), kernels);
  }
  return text;
}

/// Counts the disturbed launches; empty without one. `summaries`: of the rows that worked.
std::string disturbance_note(const std::vector<Row>& rows,
                             const std::vector<RowSummary>& summaries) {
  std::size_t launches = 0;
  std::size_t disturbed = 0;
  for (const Row& row : rows) {
    for (const Repetition& launch : row.repetitions) {
      ++launches;
      disturbed += std::ranges::count(launch.marks, "disturbed") > 0 ? 1 : 0;
    }
  }
  if (disturbed == 0) return "";
  return fmt::format(
      "disturbed: {} of {} launches; intervals leave them out where a row has others{}\n",
      disturbed, launches,
      compared_by_rounds(summaries)
          ? "; rows are compared by all launches of the rounds if the undisturbed ones agree"
      : std::ranges::any_of(summaries, &RowSummary::disturbed)
          ? "; a row without others has no speed-up and no verdict"
          : "");
}

struct Sorted {
  std::vector<RowSummary> good;  // fastest first
  std::vector<RowSummary> failed;
};

Sorted sort_rows(const std::vector<Row>& rows) {
  Sorted sorted;
  for (RowSummary& summary : summarise(rows)) {
    (summary.error ? sorted.failed : sorted.good).push_back(std::move(summary));
  }
  std::stable_sort(
      sorted.good.begin(), sorted.good.end(),
      [](const RowSummary& a, const RowSummary& b) { return a.time_ms() < b.time_ms(); });
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
    text += disturbance_note(rows, sorted.good) + kernel_note(rows, sorted.good, good_names) +
            prediction_note(rows, sorted.good, good_names);
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
