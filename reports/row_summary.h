// What a row's samples say: its median with an interval, and whether two rows can be ranked.
//
// The interval speaks of one run only. What a sample is: reports/samples.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/record.h"
#include "reports/statistics.h"

namespace stratagem::reports {

enum class VerificationState { passed, failed, not_verified };

struct RowSummary {
  std::string name;
  std::string strategy;
  std::string workload;  // rows with the same workload may be ranked against each other
  std::int64_t cores_per_device = 1;
  bool tutorial = false;
  std::vector<double> samples_ms;  // empty when the row failed
  double median_ms = 0;
  Interval interval;
  double spread = 0;         // (p90 - p10) over the median
  std::size_t outliers = 0;  // samples beyond Tukey's fences, which count like the others
  double samples_per_second = 0;
  std::optional<double> tokens_per_second;  // of models that read text
  std::optional<double> bubble_measured;    // mean over devices
  std::optional<double> bubble_ideal;
  std::optional<double> predicted_ms;
  std::optional<double> mfu;
  std::int64_t peak_memory_bytes = 0;  // of the fullest device
  VerificationState verification = VerificationState::not_verified;
  std::vector<std::string> marks;    // each once
  std::optional<std::string> error;  // one line; set when any repetition failed

  bool oversubscribed() const;
  /// Whether the samples scatter more than a claim of a few per cent can bear.
  bool wide() const;
};

/// The spread from which a row is wide.
inline constexpr double wide_spread = 0.05;

RowSummary summarise(const Row& row);

/// An error as one line: the rank, what happened, the host and the last action.
std::string describe(const Error& error);

/// The option of the row, or nullptr where it is absent or null.
const Value* find_value(const Values& values, const std::string& name);

/// True when the faster can be told: both have an interval and the two do not meet.
bool distinguishable(const RowSummary& first, const RowSummary& second);

/// The first `single` row with one core a device that does the same work; nullptr without one.
const RowSummary* baseline_of(const RowSummary& row, const std::vector<RowSummary>& rows);

}  // namespace stratagem::reports
