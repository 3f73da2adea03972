// Runs one job in processes of its own, one for each rank.
//
// A row of a benchmark may run out of memory, crash or hang; none of these may take the other rows
// with it. So the controller, which touches no tensor, starts a worker (the same binary) for every
// job and rank, hands it one JSON document, and waits for one JSON document: a limited time, and
// for no longer than the user wants to. Whatever happens, nothing of the workers is left behind.
//
// Of several ranks, rank 0's document is the result. When one fails the others are ended, and the
// error is the one that caused the rest: a rank that only lost its connection is not to blame.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/signals.h"
#include "reports/record.h"

namespace stratagem::bench {

struct LaunchOptions {
  /// The worker's command line; `--job-fd N --result-fd N --activity-fd N` are added to it.
  std::vector<std::string> command = {"/proc/self/exe", "worker"};
  /// How long a worker may go without finishing or beginning another action.
  std::chrono::duration<double> limit{150};
  /// Processes to start; with several, each job has a member "rendezvous" that says where they
  /// meet.
  int ranks = 1;
  /// How long ranks wait for one another, in meetings and in collectives.
  std::chrono::duration<double> rendezvous_timeout{120};
  /// Passes the worker's own output on to standard error.
  bool verbose = false;
  /// Ends the worker when raised; may be null.
  const Interrupt* interrupt = nullptr;
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

struct LaunchResult {
  LaunchStatus status = LaunchStatus::failure;
  nlohmann::json result;  // when ok
  reports::Error error;   // otherwise
};

/// The descriptor behind which rank 0 finds the socket that the ranks' store is to listen on.
constexpr int inherited_store_fd = 6;

/// Runs `job` and waits for its end. Throws std::system_error only when no process can be started.
LaunchResult launch(const nlohmann::json& job, const LaunchOptions& options);

}  // namespace stratagem::bench
