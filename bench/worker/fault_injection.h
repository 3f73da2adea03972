// Faults on purpose, for the tests of what happens when a device fails. Read from the environment
// of a worker: STRATAGEM_TEST_FAULT=KIND@ACTION[@STRATEGY[@RANK]], with KIND one of throw, kill,
// stop (SIGSTOP), hang and exhaust (memory), ACTION as schedules print it: "kill@1B0@pipeline".
//
// Three kinds change what a step does and leave it right, for the tests of comparisons: work=MS
// computes for so long before the action, operator calls one operator more, all_reduce exchanges
// one number more between all ranks (with one rank it does nothing). With "verify:" before the
// kind it happens where the row is verified, and not where it is timed.
#pragma once

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

}  // namespace stratagem::bench
