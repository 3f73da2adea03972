// The real environment of a measurement: worker processes, this machine's cores, the user's cache.
#pragma once

#include "bench/launch/cluster.h"
#include "bench/measure/measure.h"
#include "bench/measure/progress.h"

namespace stratagem::bench {

/// `interrupt`, `observer` and `cluster` must outlive what is returned. `verbose` shows the
/// workers' output. `cluster`, which may be null, runs the jobs of several ranks.
MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose, Cluster* cluster = nullptr);

}  // namespace stratagem::bench
