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
};

/// Fractions of the step that devices stood still for transfers and peers, and that transfers took
/// while they computed.
struct CommunicationShare {
  double exposed = 0;
  double hidden = 0;
};

struct RowSummary {
  std::string name;
  std::string strategy;
  std::int64_t cores_per_device = 1;
  bool tutorial = false;
  bool disturbed = false;         // every launch: the samples are there, and decide nothing
  std::vector<double> rounds_ms;  // the launches of all rounds, disturbed or not, without repeats

  std::string workload;                 // only rows of the same workload may be compared
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
};

/// What results.json says of a row.
template <SameAs<RowSummary> Self, class Visit>
void each_field(Self& row, Visit visit) {
  visit("workload", row.workload);
  visit("baseline", row.baseline);
  visit("samples_ms", row.samples_ms);
  visit("mean_ms", row.mean_ms);
  visit("median_ms", row.median_ms);
  visit("deviation_ms", row.deviation_ms);
  visit("interval_ms", row.interval_ms);
  visit("spread", row.spread);
  visit("wide", row.wide);
  visit("outliers", row.outliers);
  visit("bubble", row.bubble);
  visit("breakdown_ms", row.breakdown_ms);
  visit("communication_share", row.communication_share);
  visit("samples_per_second", row.samples_per_second);
  visit("tokens_per_second", row.tokens_per_second);
  visit("mfu", row.mfu);
  visit("peak_memory_bytes", row.peak_memory_bytes);
  visit("predicted_ms", row.predicted_ms);
  visit("prediction_error", row.prediction_error);
  visit("ratios", row.ratios);
  visit("cannot_tell", row.cannot_tell);
  visit("verification", row.verification);
  visit("marks", row.marks);
  visit("error", row.error);
}

template <SameAs<Interval> Self, class Visit>
void each_field(Self& interval, Visit visit) {
  visit("low", interval.low);
  visit("high", interval.high);
  visit("coverage", interval.coverage);
}

template <SameAs<RowBubble> Self, class Visit>
void each_field(Self& bubble, Visit visit) {
  visit("measured", bubble.measured);
  visit("ideal", bubble.ideal);
}

template <SameAs<CommunicationShare> Self, class Visit>
void each_field(Self& share, Visit visit) {
  visit("exposed", share.exposed);
  visit("hidden", share.hidden);
}

template <SameAs<Ratio> Self, class Visit>
void each_field(Self& ratio, Visit visit) {
  visit("value", ratio.value);
  visit("low", ratio.low);
  visit("high", ratio.high);
  visit("coverage", ratio.coverage);
}

/// The spread from which a row is wide: no claim of a few per cent can rest on it.
inline constexpr double wide_spread = 0.05;

/// One summary a row, in their order.
std::vector<RowSummary> summarise(const std::vector<Row>& rows);

/// An error as one line: the rank, what happened, the host and the last action.
std::string describe(const Error& error);

}  // namespace stratagem::reports
