// The launches of a measurement: rounds of every row, kept as they finish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine/noise_sources.h"
#include "bench/measure/measure.h"
#include "bench/measure/partial_file.h"
#include "bench/measure/preparation.h"
#include "bench/measure/round_order.h"

namespace stratagem::bench {

class Rounds {
 public:
  /// Stores in the caller's `rows` the failure that ends them.
  Rounds(std::vector<PreparedRow>& rows, const MeasureOptions& options,
         const MeasureEnvironment& environment, Observer& observer);

  /// Launches what an earlier run has not finished. If something disturbed launches, further rounds
  /// of all rows follow. `partial`, which may be null, keeps the launches. Throws
  /// std::invalid_argument if the earlier run cannot be continued.
  void run(PartialFile* partial);

  /// Judges every row's own steps: see prove_rows().
  void prove();

  bool interrupted() const { return interrupted_; }

  /// Returns the median of the run's canaries by the devices that ran them; 0 if there were none.
  std::map<std::string, double> usual_canaries_ms() const;

  /// Marks the launches on devices that were slow throughout the run (slow_throughout).
  void mark_slow(const std::map<std::string, NoiseSource>& slow);

  /// Returns the measurements with the predictions; called once, at the end.
  Measurement result(reports::Context context);

 private:
  void begin_partial_file();
  std::vector<PlannedLaunch> remaining_launches();
  void mark_disturbed();
  std::vector<PlannedLaunch> further_rounds();
  /// Orders that number of launches of each row. Each part of a run has an order of its own.
  std::vector<PlannedLaunch> in_order(const std::vector<std::int64_t>& rounds,
                                      std::uint64_t part) const;
  void run(const std::string& phase, const std::vector<PlannedLaunch>& launches);
  bool run(const PlannedLaunch& planned);
  void take(const PlannedLaunch& planned, const Launched<MeasureResult>& launched,
            const std::string& started);
  void keep(const FinishedLaunch& launch);
  void write_partial_file(const std::function<void(PartialFile&)>& write);
  bool keeps_all();
  void fail(const PlannedLaunch& planned, reports::Repetition failure);
  reports::Row record(std::size_t index);

  std::vector<PreparedRow>& rows_;
  const MeasureOptions& options_;
  const MeasureEnvironment& environment_;
  Observer& observer_;
  std::vector<std::vector<reports::Repetition>> repetitions_;  // by row
  std::vector<std::vector<Evidence>> evidence_;                // by row; of these launches or empty
  std::vector<std::vector<reports::TimelineEvent>> traces_;    // by row, in the clock's ms
  PartialPlan plan_;
  PartialFile* partial_ = nullptr;  // null: nothing is kept
  bool partial_file_failed_ = false;
  std::set<std::pair<std::size_t, std::int64_t>> done_;
  std::size_t planned_ = 0;
  std::size_t finished_ = 0;
  std::int64_t last_place_ = 0;  // in the order of all launches, including an earlier run's
  bool interrupted_ = false;
};

}  // namespace stratagem::bench
