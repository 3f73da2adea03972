// Injects faults, for the tests of a failing device. Reads the environment of a worker:
// STRATAGEM_TEST_FAULT=KIND@ACTION[@STRATEGY[@RANK]], with KIND one of throw, kill, stop (SIGSTOP),
// hang and exhaust (memory), ACTION as schedules print it: "kill@1B0@pipeline".
//
// Three kinds change what a step does and leave it right, for the tests of comparisons: work=MS
// computes for that time before the action, operator calls one operator more, all_reduce exchanges
// one number more between all ranks (with one rank it does nothing). With "verify:" before the kind
// the fault occurs only in the verification of the row, not in its timing.
//
// Two kinds make a measured step wrong, for the tests of its proof. They have a step's number
// instead of the action: stale@2 gives step 2 and the later ones the batch of step 1, and rate=0@5
// multiplies the learning rate of step 5 by 0. The tutorial's protocol has neither.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "strategies/distributed/process_group.h"
#include "strategies/schedules/action.h"

namespace stratagem::bench {

/// The group of all ranks, null for a single rank; called when the action begins.
using AllRanks = std::function<distributed::ProcessGroup*()>;

enum class FaultyTask { measure, verify };

/// Returns whether the environment requests a fault in some row, whose times do not count.
bool faults_are_injected();

/// Returns the fault in this task of a row of `strategy` on this rank; empty if none is requested.
std::function<void(const schedules::Action&)> injected_fault(FaultyTask task,
                                                             const std::string& strategy, int rank,
                                                             AllRanks all_ranks);

/// An injected fault of a step.
struct StepFault {
  std::int64_t batch = 0;  // step whose batch is used
  double rate = 1;         // factor of the learning rate
};

/// Returns the requested fault in this step of a measured row.
StepFault injected_step_fault(const std::string& strategy, int rank, std::int64_t step);

}  // namespace stratagem::bench
