// The worker's side of launch(): the process that does one job.
//
//   stratagem worker --job-fd N --result-fd N --activity-fd N
//
// Reads one JSON document, does its job (bench/worker/tasks.h), writes one:
//   {"ok": true, "result": ...}
//   {"ok": false, "kind": "usage" | "failure" | "timeout", "message": ..., "last_action": ...}
// and leaves at once with 0, 2 or 4. It dies with the controller that started it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stratagem::bench {

/// The main function of a program whose launches start it again: does a worker's job if it was
/// started as one, else calls `perform` with its arguments. Returns the exit code; exceptions
/// become one line and their exit code (bench/launch/exit_codes.h).
int program_main(int argc, char** argv, const std::string& program,
                 const std::function<int(const std::vector<std::string>&)>& perform);

/// Returns whether these are the arguments of a worker.
bool is_worker_call(int argc, const char* const* argv);

/// Does not return: it does not wait for threads and queues of a failed job.
[[noreturn]] void worker_main(int argc, const char* const* argv);

}  // namespace stratagem::bench
