// The real environment of a measurement: worker processes, this machine's cores, the user's cache.
#pragma once

#include "bench/cluster.h"
#include "bench/measure.h"
#include "bench/progress.h"

namespace stratagem::bench {

/// `interrupt`, `observer` and `cluster` must outlive what is returned. `verbose` shows the
/// workers' output. `cluster`, which may be null, runs the jobs of several ranks.
MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose, Cluster* cluster = nullptr);

}  // namespace stratagem::bench
