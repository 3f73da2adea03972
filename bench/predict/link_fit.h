// The link between two ranks as latency and bandwidth, from the times of messages of several sizes.
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

/// Latency and bandwidth whose line lies nearest to the times, relative to each; a bandwidth of 0
/// where the times do not grow with the size. Throws std::invalid_argument unless there are two
/// sizes or more.
schedules::LinkModel fit_link(const std::vector<TransferTime>& times);

/// Transfers of any size on a link, from those that were measured.
class MeasuredLink {
 public:
  /// Throws as fit_link() does.
  explicit MeasuredLink(const std::vector<LinkTime>& times);

  const schedules::LinkModel& line() const { return line_; }
  /// With the processor's share of the measured size that lies nearest.
  schedules::Cost transfer(std::int64_t bytes) const;

 private:
  std::vector<LinkTime> times_;
  schedules::LinkModel line_;
};

/// Returns what an all-reduce takes between `ranks` ranks, from the times between two of them. A
/// ring makes 2 (ranks - 1) exchanges of 1 / ranks of the bytes (Patarasuk and Yuan 2009).
std::vector<LinkTime> link_of_ring(std::vector<LinkTime> link_of_two, int ranks);

}  // namespace stratagem::bench
