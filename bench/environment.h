// The real environment of a measurement: worker processes, this machine's cores, the user's cache.
#pragma once

#include "bench/measure.h"
#include "bench/progress.h"

namespace stratagem::bench {

/// `interrupt` and `observer` must outlive what is returned. `verbose` shows the workers' output.
MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose);

}  // namespace stratagem::bench
