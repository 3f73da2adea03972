// What the samples of each row say, and how the rows stand to each other: the one analysis, which
// the table, the verdict and results.json render.
//
// A sample is one launch, by the median of its timed steps: a fresh set of processes has one memory
// layout and one set of neighbours, so its steps say little about the next launch. Under the
// tutorial's protocol it is a whole training call, the sum of its steps. An interval speaks of one
// run only. A launch that something disturbed is no sample while there are others.
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
  bool disturbed = false;         // every launch: the samples are there, and decide nothing
  std::vector<double> rounds_ms;  // the launches of all rounds, disturbed or not, without repeats

  std::string workload;                 // as Row::workload
  std::optional<std::string> baseline;  // the row that the speed-up refers to
  std::vector<double> samples_ms;       // empty when the row failed
  double mean_ms = 0;
  double median_ms = 0;
  double deviation_ms = 0;              // with n in the denominator, as the tutorial has it
  std::optional<Interval> interval_ms;  // of the median
  double spread = 0;                    // (p90 - p10) over the median
  bool wide = false;                    // the spread is more than `wide_spread`
  std::vector<std::size_t> outliers;    // places of the samples beyond Tukey's fences
  RowBubble bubble;
  std::optional<Breakdown> breakdown_ms;  // mean over devices and samples' launches
  std::optional<CommunicationShare> communication_share;
  std::optional<double> samples_per_second;  // at the median
  std::optional<double> tokens_per_second;   // of models that read text
  std::optional<double> mfu;
  std::optional<std::int64_t> peak_memory_bytes;  // of the fullest device
  std::optional<double> predicted_ms;             // of one step, under every protocol
  std::optional<double> prediction_error;         // over the median, where both are of one step of
                                                  // a machine that nothing disturbed
  std::map<std::string, Ratio> ratios;            // of other rows of the workload: time over this
                                                  // row's, how many times as fast this one is; not
                                                  // where disturbed launches would decide it
  std::vector<std::string> cannot_tell;           // of those the rows it cannot be told apart from
  std::string verification = "not verified";      // or "passed", "failed"
  bool proven = false;                            // every launch has a conclusive proof
  std::vector<std::string> marks;                 // each once
  std::optional<std::string> error;               // one line; set when any repetition failed

  /// Its devices share cores: it takes no part in a ranking, and its prediction is for a machine
  /// with a core for each.
  bool oversubscribed() const;
  /// Whether it may be said to be faster or slower than others.
  bool ranked() const { return !error && !oversubscribed(); }
  /// What the row is ranked by: the median, under the tutorial's protocol the mean, as it has it.
  double time_ms() const { return tutorial ? mean_ms : median_ms; }
  /// How many times as fast as the baseline; nullptr without one, and for the baseline itself.
  const Ratio* speed_up() const;

  STRATAGEM_FIELDS(workload, baseline, samples_ms, mean_ms, median_ms, deviation_ms, interval_ms,
                   spread, wide, outliers, bubble, breakdown_ms, communication_share,
                   samples_per_second, tokens_per_second, mfu, peak_memory_bytes, predicted_ms,
                   prediction_error, ratios, cannot_tell, verification, proven, marks, error)
};

/// The spread from which a row is wide: no claim of a few per cent can rest on it.
inline constexpr double wide_spread = 0.05;

/// The launches that a row's figures are of: those that nothing disturbed or, where each was
/// disturbed, all that have steps.
std::vector<const Repetition*> counted_launches(const Row& row);

/// One summary a row, in their order.
std::vector<RowSummary> summarise(const std::vector<Row>& rows);

/// An error as one line: the rank, what happened, the host and the last action.
std::string describe(const Error& error);

}  // namespace stratagem::reports
