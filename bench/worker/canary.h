// Canary: a fixed product on every device of a row, all at once.
//
// It is run before and after what is timed. Where it takes longer than in other launches, something
// slowed the machine down, even where no counter of the kernel shows it.
#pragma once

#include <chrono>
#include <vector>

#include "bench/config/config.h"
#include "bench/worker/tasks.h"
#include "strategies/backends/backend.h"

namespace stratagem::bench {

class Canary {
 public:
  /// Collective.
  Canary(const Config& config, const TaskContext& context);

  /// Of the fastest product, by device of the job: of at least two, until the two fastest agree
  /// within 2%, and at most ten, or as many as fit into 300 ms. Collective.
  std::vector<double> milliseconds() const;

 private:
  const TaskContext& context_;
  backends::DeviceGroupOptions devices_;
  std::chrono::milliseconds timeout_;
};

}  // namespace stratagem::bench
