#include "bench/timing/lockstep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/bench/error_of.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::lockstep_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

/// Whoever gives the turns: listens, and says and hears one byte at a time.
class LockstepTest : public ::testing::Test {
 protected:
  LockstepTest() : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(path_.string(), address.sun_path);
    const auto* place = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(listening_.get(), place, sizeof(address)), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
  }

  runtime::UniqueFd accept() const {
    return runtime::UniqueFd(::accept(listening_.get(), nullptr, nullptr));
  }
  static char heard(const runtime::UniqueFd& from) {
    char message = 0;
    return ::recv(from.get(), &message, 1, 0) == 1 ? message : '-';
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "turns";
  runtime::UniqueFd listening_;
};

TEST_F(LockstepTest, ARunWaitsForItsTurnAndSaysWhenItIsDone) {
  Lockstep turns(path_, 10s);
  const runtime::UniqueFd other = accept();
  EXPECT_EQ(heard(other), 'r');
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(::send(other.get(), "g", 1, 0), 1);
    turns.wait();
    turns.done();
    EXPECT_EQ(heard(other), 'd');
  }
}

TEST_F(LockstepTest, ATurnThatDoesNotComeEndsTheWait) {
  Lockstep turns(path_, 50ms);
  EXPECT_THAT(error_of<std::runtime_error>([&] { turns.wait(); }),
              HasSubstr("no turn within 0.05 s"));
}

TEST_F(LockstepTest, WhoeverLeavesIsMissed) {
  Lockstep turns(path_, 10s);
  { const runtime::UniqueFd other = accept(); }
  EXPECT_THAT(error_of<std::runtime_error>([&] { turns.wait(); }), HasSubstr("closed the socket"));
  EXPECT_THAT(error_of<std::runtime_error>([&] { turns.done(); }), HasSubstr("closed the socket"));
}

TEST_F(LockstepTest, NobodyAndNonsenseAreNamed) {
  const std::string absent = path_.string() + ".absent";
  EXPECT_THAT(error_of<std::runtime_error>([&] { const Lockstep turns(absent, 1s); }),
              AllOf(HasSubstr(absent), HasSubstr("cannot connect"), Not(HasSubstr("\n"))));
  EXPECT_THAT(
      error_of<std::runtime_error>([&] { const Lockstep turns(std::string(200, 'x'), 1s); }),
      HasSubstr("too long for a socket"));
}

}  // namespace
}  // namespace stratagem::bench::lockstep_test
