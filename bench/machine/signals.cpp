#include "bench/machine/signals.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace stratagem::bench {

namespace {

sigset_t interrupting_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = interrupting_signals();
  pthread_sigmask(SIG_BLOCK, &set, &original_mask_);
  fd_ = runtime::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

// Consumes a signal that was noticed: once unblocked, it would end the process on the spot.
Interrupt::~Interrupt() {
  signalfd_siginfo information{};
  while (::read(fd_.get(), &information, sizeof(information)) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

bool Interrupt::raised() const {
  pollfd waiting{fd_.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) > 0;
}

RequestSignal::RequestSignal(int signal) {
  sigemptyset(&signal_);
  sigaddset(&signal_, signal);
  pthread_sigmask(SIG_BLOCK, &signal_, &original_mask_);
}

RequestSignal::~RequestSignal() {
  while (take()) {
  }
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

bool RequestSignal::take() const {
  constexpr timespec at_once{};
  return sigtimedwait(&signal_, nullptr, &at_once) > 0;
}

}  // namespace stratagem::bench
