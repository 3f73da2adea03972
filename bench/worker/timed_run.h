// TimedRun: steps timed from a moment that all ranks share. docs/explanation/timing.md draws the
// timed region.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bench/worker/session.h"
#include "reports/record.h"
#include "strategies/distributed/process_group.h"
#include "strategies/schedules/executor.h"

namespace stratagem::bench {

using PendingSteps = std::vector<std::unique_ptr<strategies::PendingStep>>;

double milliseconds(std::chrono::steady_clock::duration duration);
/// Returns the processor time of this process so far.
double processor_milliseconds();

/// Waits for this rank's devices.
void synchronize(const Session& session);

/// Returns the ranks' largest number: all of them must make the same decision. Collective.
double slowest(const TaskContext& context, double milliseconds);

/// Times count from the start, on every rank: they start together, after a barrier. A step ends
/// when its last rank has ended it.
struct TimedRun {
  using Clock = std::chrono::steady_clock;

  PendingSteps steps;
  std::vector<schedules::Execution> executions;  // [step]
  Clock::time_point start;
  std::vector<Clock::time_point> ends;             // [step]
  std::vector<std::vector<double>> per_rank_ms;    // [rank][step]
  double processor_ms = 0;                         // time of the process, all steps
  std::optional<reports::OwnCores> own_cores;      // cores of this rank, all steps
  distributed::CommunicationCounts communication;  // calls of the process, all steps

  /// Returns each step's time, from the end of the one before.
  std::vector<double> step_ms() const;
};

/// Runs the steps that `enqueue_steps` enqueues. Collective.
TimedRun timed(const Session& session, const TaskContext& context,
               const std::function<void(PendingSteps&)>& enqueue_steps, bool watches_cores = true);

}  // namespace stratagem::bench
