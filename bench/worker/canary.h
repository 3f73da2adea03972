// Canary: a fixed product on every device of a row, all at once.
//
// It is run before and after timed work. If it takes longer than in other launches, something
// slowed the machine down, even if no counter of the kernel shows it.
#pragma once

#include <chrono>
#include <limits>
#include <vector>

#include "bench/config/config.h"
#include "bench/worker/tasks.h"
#include "strategies/backends/backend.h"

namespace stratagem::bench {

/// Times of successive products. The first one warms up and does not count. The fastest of the
/// others represents the device: while the two fastest differ, something disturbed them.
class CanaryTimes {
 public:
  static constexpr int fewest_products = 2;  // not counting the first
  static constexpr int most_products = 10;
  static constexpr double longest_ms = 300;  // no further product begins after this time
  static constexpr double same = 0.02;

  /// Takes the next product's time, in ms; returns whether to run another.
  bool should_continue(double product_ms);

  double fastest_ms() const { return fastest_ms_; }

 private:
  int made_ = 0;
  double total_ms_ = 0;
  double fastest_ms_ = std::numeric_limits<double>::infinity();
  double second_ms_ = std::numeric_limits<double>::infinity();
};

class Canary {
 public:
  /// Collective: all ranks must construct it.
  Canary(const Config& config, const TaskContext& context);

  /// Returns the time of the fastest product, by device of the job: of at least two, until the two
  /// fastest agree within 2%, and at most ten, or as many as fit into 300 ms. Collective.
  std::vector<double> milliseconds() const;

 private:
  const TaskContext& context_;
  backends::DeviceGroupOptions devices_;
  std::chrono::milliseconds timeout_;
};

}  // namespace stratagem::bench
