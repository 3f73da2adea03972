// A search for a zero-bubble order within a limit of activations (Qi, Wan, Huang, Lin 2023, "Zero
// Bubble Pipeline Parallelism", section 3). Limits of p and 2 p micro-batches make its ZB-1p and
// ZB-2p.
#pragma once

#include "strategies/schedules/registry.h"

namespace stratagem::schedules {

/// Returns the compute order, with one stage on each device, that leaves the busiest device idle
/// for the shortest time between its first and its last pass. Devices choose their next passes in
/// simulated time:
///
/// - Before its first I, a device runs forwards up to the limit.
/// - Later it runs the F or the I that has arrived.
/// - W fills gaps of its own length, and makes room at the limit.
///
/// The rules leave some choices open, such as the order of an F and an I that are both there. The
/// search tries all combinations, or those for which a fixed number of passes suffices. It is
/// deterministic.
///
/// No device exceeds `live_limit`. A micro-batch counts as 1 from its F to its I, and as
/// `weight_share` from there to its W: the part of its activations that W needs. 1 is the count of
/// peak_live_micro_batches(). Throws std::invalid_argument for a limit below 1.
Schedule zero_bubble_search(const ScheduleSize& size, const PassTimes& times, int live_limit,
                            double weight_share = 1);

}  // namespace stratagem::schedules
