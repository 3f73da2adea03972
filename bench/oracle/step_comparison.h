// Compares a whole training step in a row's own arithmetic with one device's reference kernels. It
// covers what no layer shows: which gradients are added up, what is packed, copied or exchanged
// between layers, and the optimizer.
//
// A deep network magnifies a rounding: ResNet-50 at its start by about a thousand in one step. The
// factor is measured: the distance of the reference kernels' own step in that arithmetic from their
// step in float64.
#pragma once

#include "bench/oracle/layer_comparison.h"
#include "strategies/strategy.h"

namespace stratagem::bench {

/// `strategy` is fresh, its workload of the row's format; `batch` is the number of the batch that
/// both train on. Every gradient, updated parameter, buffer and optimizer entry may differ by the
/// bound from the reference kernels' in the row's format, and by twice the bound from those in
/// float64. If the loss is scaled dynamically the step is the first that is not skipped, as in a
/// run, from a run's initial scale. `compressed`: gradients were rounded to float16 on their way.
Differences compare_step(strategies::Strategy& strategy, const models::Workload& workload,
                         const OwnArithmetic& own, std::uint64_t batch, bool compressed = false);

}  // namespace stratagem::bench
