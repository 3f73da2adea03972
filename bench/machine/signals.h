// Turns Ctrl-C and termination into something that can be waited for.
//
// While an Interrupt lives, SIGINT and SIGTERM no longer end the process: they make `fd()` readable
// and `raised()` true, so that a waiting program can stop its children, keep what is finished and
// print how to continue. No handler runs at an arbitrary moment, and there is no global flag.
// Create it before the first thread.
#pragma once

#include <signal.h>

#include <stdexcept>

#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

/// The user interrupted before the first launch.
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

  /// Returns a descriptor for poll() that is readable once a signal has arrived.
  int fd() const { return fd_.get(); }
  /// Returns whether a signal has arrived since this was created. Never blocks.
  bool raised() const;
  /// Returns the signal mask that child processes start with.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  sigset_t original_mask_{};
  runtime::UniqueFd fd_;
};

/// A signal that requests something without ending anything. While it lives the signal ends neither
/// the process nor its children. Create it before the first thread.
class RequestSignal {
 public:
  explicit RequestSignal(int signal);
  ~RequestSignal();
  RequestSignal(const RequestSignal&) = delete;
  RequestSignal& operator=(const RequestSignal&) = delete;

  /// Returns whether a signal has arrived since the last call. Never blocks.
  bool take() const;

 private:
  sigset_t signal_{};
  sigset_t original_mask_{};
};

}  // namespace stratagem::bench
