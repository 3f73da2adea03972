// Runs one job in processes of its own, one for each rank.
//
// A row of a benchmark may run out of memory, crash or hang; none of these may take the other rows
// with it. So the controller, which touches no tensor, starts a worker (the same binary, or a fork
// of this process) for every job and rank, hands it the job as one JSON document, and waits for one
// JSON document: a limited time, and for no longer than the user wants to. Whatever happens,
// nothing of the workers is left behind.
//
// Of several ranks, rank 0's document is the result. When one fails the others are ended, and the
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
  /// How long a worker may go without finishing or beginning another action.
  std::chrono::duration<double> limit{150};
  /// How long it may take to leave once its result has come to its end; at most the limit.
  std::chrono::duration<double> leave_limit{5};
  /// Passes the worker's own output on to standard error.
  bool verbose = false;
  /// Ends the worker when raised; may be null.
  const Interrupt* interrupt = nullptr;
  /// Called once when it is raised. True: the workers end by themselves, and are ended only when
  /// they have not within the limit. May be empty.
  std::function<bool()> on_interrupt = {};
  /// Asked a few times a second; true ends the worker like an interrupt. May be empty.
  std::function<bool()> cancelled = {};
  /// Called a few times a second while waiting; may be empty.
  std::function<void()> on_wait = {};
};

enum class LaunchStatus {
  ok,
  usage,        // the job's configuration is wrong; `error.message` says how
  failure,      // the task failed, or the worker crashed or was killed
  hung,         // no result and no new action within the limit
  interrupted,  // the user wanted no more
};

template <class Result>
struct Launched {
  LaunchStatus status = LaunchStatus::failure;
  Result result;                        // when ok
  reports::Error error;                 // otherwise
  reports::Conditions conditions = {};  // of a job that is timed
};

/// The outcome of a launch with another result.
template <class Result, class Other>
Launched<Result> with_result(const Launched<Other>& launched, Result result) {
  return {.status = launched.status,
          .result = std::move(result),
          .error = launched.error,
          .conditions = launched.conditions};
}

/// As the worker wrote it.
using LaunchResult = Launched<nlohmann::json>;

/// The descriptor behind which rank 0 finds the socket that the ranks' store is to listen on.
constexpr int inherited_store_fd = 6;

/// Runs `job` in as many processes as its header says and waits for their end; each of several is
/// told where they meet. Throws std::system_error only when no process can be started.
LaunchResult launch(const Job& job, const LaunchOptions& options);

}  // namespace stratagem::bench
