// Summarises the samples of each row, and compares the rows: the only analysis, which the table,
// the verdict and results.json render.
//
// A sample is one launch, by the median of its timed steps: a fresh set of processes has one memory
// layout and one set of neighbours, so its steps predict little of the next launch. Under the
// tutorial's protocol it is a whole training call, the sum of its steps. An interval holds for one
// run only. A disturbed launch is not a sample if there are others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/fields.h"
#include "reports/record.h"
#include "reports/statistics.h"

namespace stratagem::reports {

/// Fractions of the step, medians over the samples' launches of means over the devices.
struct RowBubble {
  std::optional<double> measured;
  std::optional<double> ideal;

  STRATAGEM_FIELDS(measured, ideal)
};

/// Fractions of the step that devices stood still for transfers and peers, and that transfers took
/// while they computed.
struct CommunicationShare {
  double exposed = 0;
  double hidden = 0;

  STRATAGEM_FIELDS(exposed, hidden)
};

struct RowSummary {
  std::string name;
  std::string strategy;
  std::int64_t cores_per_device = 1;
  bool tutorial = false;
  bool disturbed = false;         // whether every launch was: the samples decide nothing
  std::vector<double> rounds_ms;  // the launches of all rounds, disturbed or not, without repeats

  std::string workload;                 // see Row::workload
  std::optional<std::string> baseline;  // the row that the speed-up refers to
  std::vector<double> samples_ms;       // empty if the row failed
  double mean_ms = 0;
  double median_ms = 0;
  double deviation_ms = 0;              // with n in the denominator, like the tutorial
  std::optional<Interval> interval_ms;  // interval of the median
  double spread = 0;                    // (p90 - p10) over the median
  bool wide = false;                    // the spread is more than `wide_spread`
  std::vector<std::size_t> outliers;    // places of the samples beyond Tukey's fences
  RowBubble bubble;
  std::optional<Breakdown> breakdown_ms;  // mean over devices and samples' launches
  std::optional<CommunicationShare> communication_share;
  std::optional<double> samples_per_second;       // at the median
  std::optional<double> tokens_per_second;        // for models that read text
  std::optional<double> mfu;                      // without recomputed forward passes
  std::optional<double> hfu;                      // with them; only of rows that recompute
  std::optional<std::int64_t> peak_memory_bytes;  // peak of the fullest device
  std::optional<double> predicted_ms;             // time of one step, under every protocol
  std::optional<double> prediction_error;         // over the median, if both are of one step of
                                                  // an undisturbed machine
  std::map<std::string, Ratio> ratios;            // times of the workload's other rows over this
                                                  // row's: how many times as fast this one is; not
                                                  // if disturbed launches would decide it
  std::vector<std::string> cannot_tell;           // the ones that it cannot be distinguished from
  std::string verification = "not verified";      // or "passed", "failed"
  bool proven = false;                            // every launch has a conclusive proof
  std::vector<std::string> marks;                 // each once
  std::optional<std::string> error;               // one line; set if any repetition failed

  /// Returns whether its devices share cores: it is not ranked then, and its prediction is for a
  /// machine with a core for each.
  bool oversubscribed() const;
  /// Returns whether it may be called faster or slower than others.
  bool ranked() const { return !error && !oversubscribed(); }
  /// Returns the time that ranks the row: the median, or the mean under the tutorial's protocol.
  double time_ms() const { return tutorial ? mean_ms : median_ms; }
  /// Returns how many times as fast as the baseline it is; nullptr without another row as baseline.
  const Ratio* speed_up() const;

  STRATAGEM_FIELDS(workload, baseline, samples_ms, mean_ms, median_ms, deviation_ms, interval_ms,
                   spread, wide, outliers, bubble, breakdown_ms, communication_share,
                   samples_per_second, tokens_per_second, mfu, hfu, peak_memory_bytes, predicted_ms,
                   prediction_error, ratios, cannot_tell, verification, proven, marks, error)
};

/// The spread from which a row is wide: it supports no claim of a few per cent.
inline constexpr double wide_spread = 0.05;

/// Returns the launches behind a row's numbers: the undisturbed ones or, if each was disturbed, all
/// that have steps.
std::vector<const Repetition*> counted_launches(const Row& row);

/// Returns one summary a row, in their order.
std::vector<RowSummary> summarise(const std::vector<Row>& rows);

/// Returns an error as one line: the rank, what happened, the host and the last action.
std::string describe(const Error& error);

}  // namespace stratagem::reports
