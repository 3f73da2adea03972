// Simulator: prices any schedule without running it, and returns the same Timeline as a run does.
//
// An action starts when its stream is free and its predecessors have ended, and takes what the cost
// function says. Memory contention between devices is not modelled: costs that were measured while
// the other devices were busy contain it.
#pragma once

#include <functional>
#include <vector>

#include "strategies/pipeline/schedule.h"
#include "strategies/runtime/timeline.h"

namespace stratagem::pipeline {

/// Milliseconds that `action` takes; not negative.
using CostFunction = std::function<double(const Action& action)>;

struct SimulationOptions {
  /// Copies run beside the computation, as on a GPU's copy engine.
  bool separate_copy_stream = false;
};

runtime::Timeline simulate(const Schedule& lowered, const CostFunction& cost,
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
  std::vector<double> backward_ms;  // [stage]
  double optimizer_ms = 0;
  double transfer_ms = 0;  // activation or gradient between two devices
  double input_ms = 0;     // from the host
};

CostFunction cost_function(UniformCosts costs);

/// Fraction of devices x step in which no device computes (F, B, optimizer).
double idle_fraction(const runtime::Timeline& timeline, int devices);

}  // namespace stratagem::pipeline
