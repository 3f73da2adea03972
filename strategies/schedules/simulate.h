// Simulator: prices any schedule without running it, and returns the same Timeline as a run does.
//
// An action starts when its stream is free and its predecessors have ended. How long it takes may
// depend on whether the other devices compute at the same time: cores share caches and memory, so
// an action has two costs, and while it runs it advances at the speed between them that the number
// of busy devices gives. What a U, an RS or an AS has started is in flight beside its device's
// list, one transfer after the other. A transfer over sockets needs processor time, on a loopback
// nearly all of its own duration: it shares the device's core with the list fairly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace stratagem::schedules {

/// Milliseconds of an action; not negative. A plain number is a cost without contention.
struct Cost {
  double alone_ms = 0;  // while no other device computes
  double busy_ms = 0;   // while all of them do
  /// Of a transfer in flight: processor time over its duration, 0 .. 1.
  double processor_share = 0;

  Cost() = default;
  Cost(double ms) : alone_ms(ms), busy_ms(ms) {}  // NOLINT(google-explicit-constructor)
  Cost(double alone, double busy) : alone_ms(alone), busy_ms(busy) {}
};

using CostFunction = std::function<Cost(const Action& action)>;

struct SimulationOptions {
  /// Copies run concurrently with computation, as on a GPU's copy engine.
  bool separate_copy_stream = false;
};

/// Throws std::invalid_argument for a schedule that would deadlock. The timeline is most of the
/// memory it takes; beside it an action takes a few bits and each device's current ones.
schedules::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
                             const SimulationOptions& options = {});

/// A link between devices: latency + bytes / bandwidth.
struct LinkModel {
  double latency_ms = 0;
  double gigabytes_per_second = 0;  // 0: infinitely fast

  double transfer_ms(double bytes) const;
};

/// Costs that are the same for every micro-batch, per stage.
struct UniformCosts {
  std::vector<double> forward_ms;   // [stage]
  std::vector<double> backward_ms;  // [stage]; each half of a split one takes half of it
  double optimizer_ms = 0;
  double transfer_ms = 0;  // activation or gradient between two devices
  double input_ms = 0;     // from the host
};

CostFunction cost_function(UniformCosts costs);

/// One of many steps like this, without a barrier between them: a device that has ended its part
/// goes on to the next step, so that the ramp, where devices begin one after the other, counts once
/// in a run and not once a step.
double steady_step_ms(const schedules::Timeline& timeline, int devices);

/// The mean of so many steps that begin at a barrier: the ramp is in the first.
double mean_step_ms(const schedules::Timeline& timeline, int devices, std::int64_t steps);

/// Fraction of devices x steady step in which no device computes (F, B, optimizer).
double idle_fraction(const schedules::Timeline& timeline, int devices);

}  // namespace stratagem::schedules
