// The link between two ranks as latency and bandwidth, from the times of messages of several sizes.
#pragma once

#include <vector>

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

}  // namespace stratagem::bench
