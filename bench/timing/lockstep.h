// Lockstep alternates the steps of two runs on the same cores, so that disturbances of the machine
// affect both.
//
// The process that compares them listens at a socket of this machine for each; a run connects when
// it is warm. Each message is one byte: the run is ready, it may go, its step is done.
#pragma once

#include <chrono>
#include <string>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

class Lockstep {
 public:
  /// Connects and is ready. No wait lasts longer than the timeout. All functions throw
  /// std::runtime_error, in one line.
  Lockstep(const std::string& path, std::chrono::duration<double> timeout);

  /// Waits until this run may go.
  void wait();
  void done();

 private:
  void send(char message);

  std::string path_;
  std::chrono::duration<double> timeout_;
  runtime::UniqueFd socket_;
};

}  // namespace stratagem::bench
