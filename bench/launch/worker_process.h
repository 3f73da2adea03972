// A child process with a job to read, a result to write and a record of its last action.
//
// The parts of launch() that call the operating system: the process leads a group of its own, so
// that a Ctrl-C at the terminal reaches only the controller, and so that everything the worker
// started can be ended with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bench/machine/signals.h"
#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

/// The main function of a worker; does not return.
using WorkerBody = void (*)(int argc, const char* const* argv);

/// Returns true if a fork of this process can do a worker's job: no other thread holds a lock that
/// the fork would wait for, and its libraries have read no OMP_NUM_THREADS, which workers never
/// see.
bool can_fork();

class WorkerProcess {
 public:
  /// Starts `command` with the job at one descriptor and the progress page at another, and
  /// `store_fd`, unless it is -1, at launch.h's inherited_store_fd. If `body` is given and
  /// can_fork() holds, it forks this process, and the fork runs `body` instead.
  WorkerProcess(const std::vector<std::string>& command, WorkerBody body, const std::string& job,
                int progress_fd, int store_fd, const Interrupt* interrupt);
  /// Ends the whole group if it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  int result_fd() const { return result_.get(); }
  /// Returns the descriptor of the worker's standard output and standard error.
  int output_fd() const { return output_.get(); }

  pid_t pid() const { return pid_; }

  /// Returns whether the process has ended by itself. Never blocks.
  bool ended();
  /// Ends the group with SIGKILL and collects it.
  void kill();
  /// Returns the status from waitpid(), once it has ended or was killed.
  int wait_status() const { return wait_status_; }

 private:
  pid_t pid_ = -1;
  int wait_status_ = 0;
  runtime::UniqueFd result_;
  runtime::UniqueFd output_;
};

}  // namespace stratagem::bench
