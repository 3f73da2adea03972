// Fits latency and bandwidth of the link between two ranks to the times of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/predict/stage_costs.h"
#include "strategies/schedules/simulate.h"

namespace stratagem::bench {

struct TransferTime {
  double bytes = 0;
  double ms = 0;
};

/// Returns latency and bandwidth whose line lies nearest to the times, relative to each; a
/// bandwidth of 0 if the times do not grow with the size. Throws std::invalid_argument unless there
/// are two sizes or more.
schedules::LinkModel fit_link(const std::vector<TransferTime>& times);

/// Computes transfers of any size on a link from the measured ones.
class MeasuredLink {
 public:
  /// Throws like fit_link().
  explicit MeasuredLink(const std::vector<LinkTime>& times);

  const schedules::LinkModel& line() const { return line_; }
  /// Uses the processor's share of the nearest measured size.
  schedules::Cost transfer(std::int64_t bytes) const;

 private:
  std::vector<LinkTime> times_;
  schedules::LinkModel line_;
};

/// Returns the times of an all-reduce between `ranks` ranks, from the times between two of them. A
/// ring makes 2 (ranks - 1) exchanges of 1 / ranks of the bytes (Patarasuk and Yuan 2009).
std::vector<LinkTime> link_of_ring(std::vector<LinkTime> link_of_two, int ranks);

}  // namespace stratagem::bench
