// What a data-parallel step takes, without running it: a backward pass that fills buckets, and
// their transfers one after another on a link, some of them on the same cores.
//
// A transfer over sockets needs processor time: on a loopback nearly all of its own duration, on a
// slow cable little. Where it overlaps the backward pass, the two share the core fairly: the
// transfer gets what it needs up to half of it, and the pass gets the rest.
#pragma once

#include <vector>

namespace stratagem::schedules {

/// A bucket of gradients: when it is full, as a fraction of the backward pass, and its transfer.
struct PlannedTransfer {
  double ready = 1;            // 0 .. 1, ascending from bucket to bucket
  double milliseconds = 0;     // with nothing else on the core
  double processor_share = 0;  // 0 .. 1: processor time of the transfer over its duration
};

/// How fast each side goes while both run on one core, as fractions of its own speed.
struct Speeds {
  double compute = 1;
  double transfer = 1;
};
Speeds speeds_together(double processor_share);

struct Interval {
  double start_ms = 0;
  double end_ms = 0;
};

struct OverlappedPass {
  double compute_end_ms = 0;   // of the backward pass, slowed by the transfers that overlap it
  double transfer_end_ms = 0;  // of the last transfer
  std::vector<Interval> transfers = {};
  double end_ms() const {
    return compute_end_ms > transfer_end_ms ? compute_end_ms : transfer_end_ms;
  }
};

/// Both begin at 0. `backward_ms` is the pass alone.
OverlappedPass overlap(double backward_ms, const std::vector<PlannedTransfer>& transfers);

}  // namespace stratagem::schedules
