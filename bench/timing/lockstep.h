// Lockstep: two runs on the same cores, a step each, so that what disturbs the machine falls on
// both.
//
// Whoever compares them listens at a socket of this machine for each; a run connects when it is
// warm. One byte stands for each message: the run says that it is ready, hears that it may go, and
// says when its step is done.
#pragma once

#include <chrono>
#include <string>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

class Lockstep {
 public:
  /// Connects and is ready. No wait lasts longer than the timeout. Throws std::runtime_error, in
  /// one line, as the others do.
  Lockstep(const std::string& path, std::chrono::duration<double> timeout);

  /// Until this run may go.
  void wait();
  void done();

 private:
  void send(char message);

  std::string path_;
  std::chrono::duration<double> timeout_;
  runtime::UniqueFd socket_;
};

}  // namespace stratagem::bench
