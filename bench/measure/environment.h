// The real environment of a measurement: worker processes, this machine's cores, the user's cache.
#pragma once

#include "bench/launch/cluster.h"
#include "bench/measure/measure.h"
#include "bench/measure/progress.h"

namespace stratagem::bench {

/// Returns true if no time of the job is used, and it needs no GPU, whose driver cannot be used in
/// a fork of a process in which it has begun. `untimed`: no time is used (is_untimed()).
bool may_fork(const Job& job, bool untimed);

/// `interrupt`, `observer` and `cluster` must outlive the returned environment. `verbose` shows the
/// workers' output. `worker` is the workers' main function (bench/worker/worker_main.h): a fork of
/// this process runs it for a job for which may_fork() holds. With null there are no forks.
/// `cluster`, which may be null, runs the jobs of several ranks.
MeasureEnvironment make_environment(Catalogue catalogue, const Interrupt& interrupt,
                                    Observer& observer, bool verbose, WorkerBody worker,
                                    Cluster* cluster = nullptr);

}  // namespace stratagem::bench
