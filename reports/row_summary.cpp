#include "reports/row_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <string_view>

#include "reports/row_comparison.h"

namespace stratagem::reports {
namespace {

Value option(const Row& row, std::string_view name) {
  const auto found = std::ranges::find(row.config, name, &Values::value_type::first);
  return found == row.config.end() ? Value() : found->second;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Returns whether a line names rank 1, which "rank 12" does not.
bool names(const std::string& line, const std::string& rank) {
  for (std::size_t at = line.find(rank); at != std::string::npos; at = line.find(rank, at + 1)) {
    const std::size_t end = at + rank.size();
    if (end == line.size() || std::isdigit(static_cast<unsigned char>(line[end])) == 0) return true;
  }
  return false;
}

using Launches = std::vector<const Repetition*>;

/// Returns the median over the launches that have one; empty if none has.
template <class Figure>
std::optional<double> median_of(const Launches& launches, Figure figure) {
  std::vector<double> values;
  for (const Repetition* launch : launches) {
    if (const std::optional<double> value = figure(*launch)) values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(median(values));
}

std::optional<double> mean_bubble(const Repetition& repetition, double Bubble::*which) {
  if (repetition.devices.empty()) return std::nullopt;
  std::vector<double> fractions;
  for (const DeviceRecord& device : repetition.devices) fractions.push_back(device.bubble.*which);
  return mean(fractions);
}

std::optional<double> counter(const Repetition& repetition, const std::string& name) {
  const auto found = repetition.counters.find(name);
  return found == repetition.counters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Breakdown> mean_breakdown(const Launches& launches) {
  std::map<std::string_view, double> sums;
  double devices = 0;
  for (const Repetition* launch : launches) {
    for (const DeviceRecord& device : launch->devices) {
      each_field(device.breakdown_ms,
                 [&](std::string_view name, double part) { sums[name] += part; });
      ++devices;
    }
  }
  if (devices == 0) return std::nullopt;
  Breakdown parts;
  each_field(parts, [&](std::string_view name, double& part) { part = sums[name] / devices; });
  return parts;
}

std::optional<CommunicationShare> communication_share(const Breakdown& parts) {
  double whole = -parts.communication_hidden;
  each_field(parts, [&](std::string_view, double part) { whole += part; });
  const double exposed = parts.communication_exposed + parts.wait;
  if (whole <= 0 || exposed + parts.communication_hidden <= 0) return std::nullopt;
  return CommunicationShare{exposed / whole, parts.communication_hidden / whole};
}

std::optional<std::int64_t> peak_memory(const Row& row) {
  std::int64_t peak = 0;
  for (const Repetition& repetition : row.repetitions) {
    for (const DeviceRecord& device : repetition.devices) {
      peak = std::max(peak, device.peak_memory_bytes);
    }
  }
  return peak > 0 ? std::optional(peak) : std::nullopt;
}

/// Adds the statistics of the samples; `steps` make a sample.
void add_statistics(RowSummary& summary, std::int64_t samples_per_step, double steps) {
  const std::vector<double>& samples = summary.samples_ms;
  const Fences fences = tukey_fences(samples);
  for (std::size_t index = 0; index < samples.size(); ++index) {
    if (!fences.hold(samples[index])) summary.outliers.push_back(index);
  }
  summary.mean_ms = mean(samples);
  summary.median_ms = median(samples);
  summary.deviation_ms = population_standard_deviation(samples);
  summary.interval_ms = median_interval(samples);
  if (summary.median_ms <= 0) return;
  summary.spread = (percentile(samples, 0.9) - percentile(samples, 0.1)) / summary.median_ms;
  summary.wide = summary.spread > wide_spread;
  summary.samples_per_second =
      1e3 * static_cast<double>(samples_per_step) * steps / summary.median_ms;
}

void add_prediction(RowSummary& summary, const Launches& samples) {
  summary.predicted_ms =
      median_of(samples, [](const Repetition& launch) { return launch.predicted_ms; });
  if (!summary.predicted_ms || summary.tutorial || summary.oversubscribed()) return;
  if (summary.disturbed) return;  // the prediction is for an undisturbed machine
  if (summary.median_ms > 0) {
    summary.prediction_error = *summary.predicted_ms / summary.median_ms - 1;
  }
}

bool is_calm(const Repetition& repetition) {
  return std::ranges::count(repetition.marks, disturbed_mark) == 0;
}

bool has_steps(const Repetition& repetition) {
  return !repetition.error && !repetition.step_ms.empty();
}

bool is_calm_sample(const Repetition& repetition) {
  return has_steps(repetition) && is_calm(repetition);
}

double sample_of(const RowSummary& summary, const Repetition& repetition) {
  const std::vector<double>& step_ms = repetition.step_ms;
  return summary.tutorial ? std::accumulate(step_ms.begin(), step_ms.end(), 0.0) : median(step_ms);
}

/// Returns false for the repeat of a disturbed launch, which follows the rounds.
bool is_of_the_rounds(const Repetition& repetition, const Row& row) {
  const Value rounds = option(row, "repetitions");
  const auto* count = std::get_if<std::int64_t>(&rounds);
  return count == nullptr || repetition.index < *count;
}

void add_measurements(RowSummary& summary, const Row& row) {
  std::size_t steps = 1;
  const Launches samples = counted_launches(row);
  summary.disturbed = std::ranges::none_of(row.repetitions, is_calm_sample);
  for (const Repetition& repetition : row.repetitions) {
    if (!has_steps(repetition)) continue;
    if (summary.tutorial) steps = repetition.step_ms.size();
    if (is_of_the_rounds(repetition, row)) {
      summary.rounds_ms.push_back(sample_of(summary, repetition));
    }
  }
  for (const Repetition* repetition : samples) {
    summary.samples_ms.push_back(sample_of(summary, *repetition));
  }
  if (summary.samples_ms.empty()) {
    summary.error = "not measured";
    return;
  }
  add_statistics(summary, row.samples_per_step, static_cast<double>(steps));
  add_prediction(summary, samples);
  summary.bubble.measured =
      median_of(samples, [](const Repetition& one) { return mean_bubble(one, &Bubble::measured); });
  summary.bubble.ideal =
      median_of(samples, [](const Repetition& one) { return mean_bubble(one, &Bubble::ideal); });
  summary.breakdown_ms = mean_breakdown(samples);
  if (summary.breakdown_ms) {
    summary.communication_share = communication_share(*summary.breakdown_ms);
  }
  summary.tokens_per_second =
      median_of(samples, [](const Repetition& one) { return counter(one, "tokens_per_second"); });
  summary.mfu = median_of(samples, [](const Repetition& one) { return one.mfu; });
  summary.hfu = median_of(samples, [](const Repetition& one) { return counter(one, "hfu"); });
  summary.peak_memory_bytes = peak_memory(row);
}

RowSummary summary_of(const Row& row) {
  RowSummary summary;
  summary.name = row.name;
  summary.strategy = row.strategy;
  summary.workload = row.workload;
  summary.tutorial = option(row, "protocol") == Value("tutorial");
  const Value cores = option(row, "cores_per_device");
  if (const auto* count = std::get_if<std::int64_t>(&cores)) summary.cores_per_device = *count;
  summary.proven = !row.repetitions.empty() &&
                   std::ranges::all_of(row.repetitions, [](const Repetition& repetition) {
                     return repetition.proof && repetition.proof->is_conclusive();
                   });
  for (const Repetition& repetition : row.repetitions) {
    if (repetition.verification && summary.verification != "failed") {
      summary.verification = repetition.verification->passed ? "passed" : "failed";
    }
    for (const std::string& mark : repetition.marks) {
      if (std::ranges::find(summary.marks, mark) == summary.marks.end()) {
        summary.marks.push_back(mark);
      }
    }
    if (repetition.error && !summary.error) summary.error = describe(*repetition.error);
  }
  if (!summary.error) add_measurements(summary, row);
  return summary;
}

}  // namespace

std::vector<const Repetition*> counted_launches(const Row& row) {
  const bool has_calm = std::ranges::any_of(row.repetitions, is_calm_sample);
  Launches counted;
  for (const Repetition& repetition : row.repetitions) {
    if (has_calm ? is_calm_sample(repetition) : has_steps(repetition)) {
      counted.push_back(&repetition);
    }
  }
  return counted;
}

std::string describe(const Error& error) {
  std::string line = one_line(error.message);
  const std::string rank = fmt::format("rank {}", error.rank);
  if (!names(line, rank)) line = rank + ": " + line;
  std::string where = error.host.empty() ? "" : "host " + error.host;
  if (!error.last_action.empty() && line.find(error.last_action) == std::string::npos) {
    where += (where.empty() ? "" : ", ") + ("last action: " + one_line(error.last_action));
  }
  return where.empty() ? line : line + " (" + where + ")";
}

bool RowSummary::oversubscribed() const {
  return std::find(marks.begin(), marks.end(), "oversubscribed") != marks.end();
}

const Ratio* RowSummary::speed_up() const {
  const auto found = baseline ? ratios.find(*baseline) : ratios.end();
  return found == ratios.end() ? nullptr : &found->second;
}

std::vector<RowSummary> summarise(const std::vector<Row>& rows) {
  std::vector<RowSummary> summaries;
  for (const Row& row : rows) summaries.push_back(summary_of(row));
  compare_rows(summaries);
  return summaries;
}

}  // namespace stratagem::reports
