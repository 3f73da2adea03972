// Ctrl-C and termination as something that can be waited for.
//
// While an Interrupt lives, SIGINT and SIGTERM no longer end the process: they make `fd()` readable
// and `raised()` true, so that whoever waits can stop its children, keep what is finished and say
// how to go on. No handler runs at an arbitrary moment, and there is no global flag. Create it
// before the first thread.
#pragma once

#include <signal.h>

#include <stdexcept>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

/// The user wanted no more before the first launch was made.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Readable once a signal has arrived; for poll.
  int fd() const { return fd_.get(); }
  /// Whether one has arrived since this was created. Never blocks.
  bool raised() const;
  /// The signal mask that child processes start with.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  sigset_t original_mask_{};
  runtime::UniqueFd fd_;
};

/// A signal that asks for something without ending anything. While it lives the process is not
/// ended by the signal, nor are its children. Create it before the first thread.
class RequestSignal {
 public:
  explicit RequestSignal(int signal);
  ~RequestSignal();
  RequestSignal(const RequestSignal&) = delete;
  RequestSignal& operator=(const RequestSignal&) = delete;

  /// Whether one has arrived since it was last asked. Never blocks.
  bool take() const;

 private:
  sigset_t signal_{};
  sigset_t original_mask_{};
};

}  // namespace stratagem::bench
