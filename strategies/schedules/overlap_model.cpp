#include "strategies/schedules/overlap_model.h"

#include <algorithm>
#include <limits>

namespace stratagem::schedules {
namespace {

constexpr double fair_share = 0.5;
constexpr double never = std::numeric_limits<double>::infinity();

}  // namespace

Speeds speeds_together(double processor_share) {
  const double granted = std::min(processor_share, fair_share);
  const double speed = processor_share > 0 ? granted / processor_share : 1.0;
  return {.compute = 1 - granted, .transfer = std::min(speed, 1.0)};
}

OverlappedPass overlap(double backward_ms, const std::vector<PlannedTransfer>& transfers) {
  OverlappedPass pass;
  double now = 0;
  double done = 0;  // of the backward pass alone, in milliseconds
  std::size_t next = 0;
  double left = transfers.empty() ? 0 : transfers.front().milliseconds;
  while (done < backward_ms || next < transfers.size()) {
    const bool computes = done < backward_ms;
    const bool transfers_now =
        next < transfers.size() && (!computes || done >= transfers[next].ready * backward_ms);
    Speeds speeds;
    if (computes && transfers_now) speeds = speeds_together(transfers[next].processor_share);
    // Until the pass ends, fills the next bucket, or the transfer ends.
    double target = backward_ms;
    if (computes && !transfers_now && next < transfers.size()) {
      target = std::min(target, transfers[next].ready * backward_ms);
    }
    const double compute_time = computes ? (target - done) / speeds.compute : never;
    const double transfer_time = transfers_now ? left / speeds.transfer : never;
    if (transfers_now && pass.transfers.size() == next) pass.transfers.push_back({now, now});
    const double step = std::min(compute_time, transfer_time);
    now += step;
    if (computes) done = compute_time <= transfer_time ? target : done + step * speeds.compute;
    if (computes && done >= backward_ms) pass.compute_end_ms = now;
    if (!transfers_now) continue;
    left -= step * speeds.transfer;
    if (transfer_time > compute_time) continue;
    pass.transfer_end_ms = now;
    pass.transfers.back().end_ms = now;
    if (++next < transfers.size()) left = transfers[next].milliseconds;
  }
  return pass;
}

}  // namespace stratagem::schedules
