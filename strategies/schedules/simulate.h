// Simulator: prices any schedule without running it and returns the same Timeline as a run.
//
// An action starts when its stream is free and its predecessors have ended. Its duration may depend
// on whether the other devices compute at the same time: cores share caches and memory, so an
// action has two costs and advances at a speed between them, which the number of busy devices
// decides. A transfer that a U, an RS or an AS has started is in flight beside its device's list,
// one after the other. A transfer over sockets needs processor time, on a loopback nearly all of
// its own duration: it shares the device's core fairly with the list.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::schedules {

/// The duration of an action in milliseconds, not negative. A plain number has no contention.
struct Cost {
  double alone_ms = 0;  // while no other device computes
  double busy_ms = 0;   // while all others do
  /// The processor time of a transfer in flight over its duration, 0 .. 1.
  double processor_share = 0;

  Cost() = default;
  Cost(double ms) : alone_ms(ms), busy_ms(ms) {}  // NOLINT(google-explicit-constructor)
  Cost(double alone, double busy) : alone_ms(alone), busy_ms(busy) {}
};

using CostFunction = std::function<Cost(const Action& action)>;

struct SimulationOptions {
  /// Runs copies concurrently with computation, like a GPU's copy engine.
  bool separate_copy_stream = false;
};

/// Throws std::invalid_argument for a schedule that would deadlock. The timeline takes most of the
/// memory; beside it an action takes a few bits and each device its current ones.
schedules::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
                             const SimulationOptions& options = {});

/// A link between devices: latency + bytes / bandwidth.
struct LinkModel {
  double latency_ms = 0;
  double gigabytes_per_second = 0;  // 0: infinitely fast

  double transfer_ms(double bytes) const;
};

/// The costs of each stage, equal for every micro-batch.
struct UniformCosts {
  std::vector<double> forward_ms;   // [stage]
  std::vector<double> backward_ms;  // [stage]; each half of a split one takes half
  double optimizer_ms = 0;
  double transfer_ms = 0;  // for an activation or gradient between two devices
  double input_ms = 0;     // for a copy from the host
};

CostFunction cost_function(UniformCosts costs);

/// Returns the time of one of many such steps without a barrier between them. A device that has
/// ended its part begins the next step, so that the ramp, where devices begin one after the other,
/// counts once in a run and not once a step.
double steady_step_ms(const schedules::Timeline& timeline, int devices);

/// Returns the mean of `steps` steps after a barrier, of which the first has the ramp.
double mean_step_ms(const schedules::Timeline& timeline, int devices, std::int64_t steps);

/// Returns the fraction of devices x steady step in which no device computes (F, B, optimizer).
double idle_fraction(const schedules::Timeline& timeline, int devices);

}  // namespace stratagem::schedules
