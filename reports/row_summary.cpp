#include "reports/row_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reports/samples.h"

namespace stratagem::reports {
namespace {

std::string text_of(const Value* value) {
  if (value == nullptr) {
    return "";
  }
  return std::visit(
      [](const auto& item) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::monostate>) {
          return "";
        } else {
          return fmt::format("{}", item);
        }
      },
      *value);
}

// What must be equal for a ranking to mean anything.
std::string workload_of(const Row& row) {
  std::string workload = fmt::format("{}/batch:{}", row.model, row.samples_per_step);
  for (const char* name :
       {"device", "image_size", "sequence_length", "loss", "optimizer", "protocol", "inputs"}) {
    if (const std::string text = text_of(find_value(row.config, name)); !text.empty()) {
      workload += fmt::format("/{}:{}", name, text);
    }
  }
  return workload;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::optional<double> median_of(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(median(values));
}

template <class Pick>
double mean_over_devices(const Repetition& repetition, Pick pick) {
  double sum = 0;
  for (const DeviceRecord& device : repetition.devices) {
    sum += pick(device);
  }
  return sum / static_cast<double>(repetition.devices.size());
}

void add_verification(RowSummary& summary, const Repetition& repetition) {
  if (!repetition.verification || summary.verification == VerificationState::failed) {
    return;
  }
  summary.verification =
      repetition.verification->passed ? VerificationState::passed : VerificationState::failed;
}

void add_marks(RowSummary& summary, const Repetition& repetition) {
  for (const std::string& mark : repetition.marks) {
    if (std::find(summary.marks.begin(), summary.marks.end(), mark) == summary.marks.end()) {
      summary.marks.push_back(mark);
    }
  }
}

void add_measurements(RowSummary& summary, const Row& row) {
  std::vector<double> measured;
  std::vector<double> ideal;
  std::vector<double> predicted;
  std::vector<double> utilisation;
  std::vector<double> tokens;
  std::size_t steps = 1;
  for (const Repetition& repetition : row.repetitions) {
    if (repetition.step_ms.empty()) {
      continue;
    }
    steps = summary.tutorial ? repetition.step_ms.size() : 1;
    const std::vector<double> samples = samples_of(repetition, summary.tutorial);
    summary.samples_ms.insert(summary.samples_ms.end(), samples.begin(), samples.end());
    if (!repetition.devices.empty()) {
      measured.push_back(mean_over_devices(
          repetition, [](const DeviceRecord& device) { return device.bubble_measured; }));
      ideal.push_back(mean_over_devices(
          repetition, [](const DeviceRecord& device) { return device.bubble_ideal; }));
    }
    for (const DeviceRecord& device : repetition.devices) {
      summary.peak_memory_bytes = std::max(summary.peak_memory_bytes, device.peak_memory_bytes);
    }
    if (repetition.predicted_ms) {
      predicted.push_back(*repetition.predicted_ms * static_cast<double>(steps));
    }
    if (repetition.mfu) {
      utilisation.push_back(*repetition.mfu);
    }
    if (const auto rate = repetition.counters.find("tokens_per_second");
        rate != repetition.counters.end()) {
      tokens.push_back(rate->second);
    }
  }
  if (!summary.samples_ms.empty()) {
    const Fences fences = tukey_fences(summary.samples_ms);
    summary.outliers = static_cast<std::size_t>(std::ranges::count_if(
        summary.samples_ms, [&](double sample) { return !fences.hold(sample); }));
    summary.median_ms = median(summary.samples_ms);
    summary.interval = median_interval(summary.samples_ms);
    if (summary.median_ms > 0) {
      const double middle =
          percentile(summary.samples_ms, 0.9) - percentile(summary.samples_ms, 0.1);
      summary.spread = middle / summary.median_ms;
    }
    const double step_ms = summary.median_ms / static_cast<double>(steps);
    summary.samples_per_second =
        step_ms > 0 ? 1e3 * static_cast<double>(row.samples_per_step) / step_ms : 0;
  }
  summary.bubble_measured = median_of(measured);
  summary.bubble_ideal = median_of(ideal);
  summary.predicted_ms = median_of(predicted);
  summary.mfu = median_of(utilisation);
  summary.tokens_per_second = median_of(tokens);
}

/// Whether a line names rank 1, which "rank 12" does not.
bool names(const std::string& line, const std::string& rank) {
  for (std::size_t at = line.find(rank); at != std::string::npos; at = line.find(rank, at + 1)) {
    const std::size_t end = at + rank.size();
    if (end == line.size() || std::isdigit(static_cast<unsigned char>(line[end])) == 0) return true;
  }
  return false;
}

}  // namespace

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

bool RowSummary::wide() const { return spread > wide_spread; }

const Value* find_value(const Values& values, const std::string& name) {
  for (const auto& [key, value] : values) {
    if (key == name) {
      return std::holds_alternative<std::monostate>(value) ? nullptr : &value;
    }
  }
  return nullptr;
}

RowSummary summarise(const Row& row) {
  RowSummary summary;
  summary.name = row.name;
  summary.strategy = row.strategy;
  summary.workload = workload_of(row);
  summary.tutorial = samples_are_calls(row);
  if (const Value* cores = find_value(row.config, "cores_per_device");
      cores != nullptr && std::holds_alternative<std::int64_t>(*cores)) {
    summary.cores_per_device = std::get<std::int64_t>(*cores);
  }
  for (const Repetition& repetition : row.repetitions) {
    add_verification(summary, repetition);
    add_marks(summary, repetition);
    if (repetition.error && !summary.error) {
      summary.error = describe(*repetition.error);
    }
  }
  if (!summary.error) {
    add_measurements(summary, row);
    if (summary.samples_ms.empty()) {
      summary.error = "not measured";
    }
  }
  return summary;
}

bool distinguishable(const RowSummary& first, const RowSummary& second) {
  if (std::min(first.samples_ms.size(), second.samples_ms.size()) < 2) {
    return false;
  }
  return first.interval.high < second.interval.low || second.interval.high < first.interval.low;
}

const RowSummary* baseline_of(const RowSummary& row, const std::vector<RowSummary>& rows) {
  for (const RowSummary& candidate : rows) {
    if (candidate.strategy == "single" && candidate.cores_per_device == 1 && !candidate.error &&
        candidate.workload == row.workload) {
      return &candidate;
    }
  }
  return nullptr;
}

}  // namespace stratagem::reports
