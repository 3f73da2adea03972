// Faults on purpose, for the tests of what happens when a device fails. Read from the environment
// of a worker: STRATAGEM_TEST_FAULT=KIND@ACTION[@STRATEGY[@RANK]], with KIND one of throw, kill,
// stop (SIGSTOP), hang and exhaust (memory), ACTION as schedules print it: "kill@1B0@pipeline".
#pragma once

#include <functional>
#include <string>

#include "strategies/pipeline/action.h"

namespace stratagem::bench {

/// Empty unless the environment asks for a fault in a row of `strategy` on this rank.
std::function<void(const pipeline::Action&)> fault_on_purpose(const std::string& strategy,
                                                              int rank);

}  // namespace stratagem::bench
