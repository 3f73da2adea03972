#include "bench/machine/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace stratagem::bench::signals_test {
namespace {

TEST(Signals, ARequestIsTakenOnceAndEndsNothing) {
  const RequestSignal request(SIGUSR1);
  EXPECT_FALSE(request.take());
  ::raise(SIGUSR1);
  EXPECT_TRUE(request.take());
  EXPECT_FALSE(request.take());
  ::raise(SIGUSR1);  // nobody asks: it goes with the object
}

TEST(Signals, ARequestIsNoInterrupt) {
  const RequestSignal request(SIGUSR1);
  const Interrupt interrupt;
  ::raise(SIGUSR1);
  EXPECT_FALSE(interrupt.raised());
  EXPECT_TRUE(sigismember(&interrupt.original_mask(), SIGUSR1));  // children are not ended by it
  EXPECT_TRUE(request.take());
}

}  // namespace
}  // namespace stratagem::bench::signals_test
