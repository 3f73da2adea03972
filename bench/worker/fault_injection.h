// Faults on purpose, for the tests of what happens when a device fails. Read from the environment
// of a worker: STRATAGEM_TEST_FAULT=KIND@ACTION[@STRATEGY[@RANK]], with KIND one of throw, kill,
// stop (SIGSTOP), hang and exhaust (memory), ACTION as schedules print it: "kill@1B0@pipeline".
//
// Three kinds change what a step does and leave it right, for the tests of comparisons: work=MS
// computes for so long before the action, operator calls one operator more, all_reduce exchanges
// one number more between all ranks (with one rank it does nothing). With "verify:" before the
// kind it happens where the row is verified, and not where it is timed.
//
// Two kinds make a measured step wrong, for the tests of its proof. They have a step's number in
// the place of the action: stale@2 gives step 2 and the later ones the batch of step 1, and
// rate=0@5 multiplies the learning rate of step 5 by 0. The tutorial's protocol has none of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "strategies/distributed/process_group.h"
#include "strategies/schedules/action.h"

namespace stratagem::bench {

/// The group of all ranks, null where there is one; asked for when the action comes.
using AllRanks = std::function<distributed::ProcessGroup*()>;

enum class FaultyTask { measure, verify };

/// Whether the environment asks for a fault in some row: its times are no measurement.
bool faults_are_injected();

/// Empty unless the environment asks for a fault in this task of a row of `strategy` on this rank.
std::function<void(const schedules::Action&)> injected_fault(FaultyTask task,
                                                             const std::string& strategy, int rank,
                                                             AllRanks all_ranks);

/// A step that goes wrong on purpose.
struct StepFault {
  std::int64_t batch = 0;  // of which step
  double rate = 1;         // factor of the learning rate
};

/// Returns what the environment asks for in this step of a measured row.
StepFault injected_step_fault(const std::string& strategy, int rank, std::int64_t step);

}  // namespace stratagem::bench
