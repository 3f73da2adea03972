// Runs one job in processes of its own, one for each rank.
//
// A row of a benchmark may run out of memory, crash or hang; none of these may take the other rows
// with it. So the controller, which touches no tensor, starts a worker (the same binary, or a fork
// of this process) for every job and rank, hands it the job as one JSON document, and waits for one
// JSON document, until a limit or an interrupt. In every case it leaves nothing of the workers
// behind.
//
// With several ranks, rank 0's document is the result. When one fails the others are ended, and the
// error is the one that caused the rest: a rank that only lost its connection is not the cause.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/config/plugins.h"
#include "bench/launch/job.h"
#include "bench/launch/worker_process.h"
#include "bench/machine/signals.h"
#include "reports/record.h"

namespace stratagem::bench {

struct LaunchOptions {
  /// The worker's command line; `--job-fd N --result-fd N --activity-fd N` are added to it.
  std::vector<std::string> command = worker_command();
  /// If it is not null and can_fork() holds, a fork of this process runs it instead of the command.
  /// A fork need not load its libraries again, but all forks have one address layout, on which
  /// times depend.
  WorkerBody body = nullptr;
  /// The longest time in which a worker finishes or begins no action.
  std::chrono::duration<double> limit{150};
  /// The longest time in which it leaves after the end of its result; at most the limit.
  std::chrono::duration<double> leave_limit{5};
  /// True if the worker's own output goes to standard error.
  bool verbose = false;
  /// Ends the worker when raised; may be null.
  const Interrupt* interrupt = nullptr;
  /// Called once when it is raised. If it returns true, the workers end by themselves, and are
  /// ended only after the limit. May be empty.
  std::function<bool()> on_interrupt = {};
  /// Called a few times a second; true ends the worker like an interrupt. May be empty.
  std::function<bool()> cancelled = {};
  /// Called a few times a second while waiting; may be empty.
  std::function<void()> on_wait = {};
};

enum class LaunchStatus {
  ok,
  usage,        // the job's configuration is wrong; see `error.message`
  failure,      // the task failed, or the worker crashed or was killed
  hung,         // no result and no new action within the limit
  interrupted,  // the user ended it
};

template <class Result>
struct Launched {
  LaunchStatus status = LaunchStatus::failure;
  Result result;                        // when ok
  reports::Error error;                 // otherwise
  reports::Conditions conditions = {};  // for a timed job
};

/// Returns the outcome of a launch with another result.
template <class Result, class Other>
Launched<Result> with_result(const Launched<Other>& launched, Result result) {
  return {.status = launched.status,
          .result = std::move(result),
          .error = launched.error,
          .conditions = launched.conditions};
}

/// A result as the worker wrote it.
using LaunchResult = Launched<nlohmann::json>;

/// Rank 0's descriptor of the socket on which the ranks' store listens.
constexpr int inherited_store_fd = 6;

/// Runs `job` in the number of processes in its header and waits for their end. Several processes
/// get a rendezvous. Throws std::system_error only if no process can be started.
LaunchResult launch(const Job& job, const LaunchOptions& options);

}  // namespace stratagem::bench
