#include "bench/machine/core_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace stratagem::bench::core_lock_test {
namespace {

using namespace std::chrono_literals;

/// Another process that holds cores until it is told to let go.
class Holder {
 public:
  Holder(const std::vector<int>& cores, const std::filesystem::path& folder) {
    EXPECT_EQ(::pipe(ready_), 0);
    EXPECT_EQ(::pipe(release_), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const CoreLocks locks(cores, {.timeout = 0s, .folder = folder});
      char byte = locks.shared() ? 'n' : 'y';
      (void)!::write(ready_[1], &byte, 1);
      ::close(release_[1]);
      (void)!::read(release_[0], &byte, 1);
      ::_exit(0);
    }
    char answer = '?';
    EXPECT_EQ(::read(ready_[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
  }
  ~Holder() {
    for (const int fd : {ready_[0], ready_[1], release_[0], release_[1]}) ::close(fd);
    ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  pid_t pid() const { return pid_; }
  void release() { EXPECT_EQ(::write(release_[1], "x", 1), 1); }

 private:
  int ready_[2] = {-1, -1};
  int release_[2] = {-1, -1};
  pid_t pid_ = -1;
};

class CoreLockTest : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  std::vector<std::string> said_;
};

TEST_F(CoreLockTest, TakesFreeCoresAtOnce) {
  const CoreLocks locks({1, 0}, {.timeout = 0s, .folder = folder_});
  EXPECT_FALSE(locks.waited());
  EXPECT_FALSE(locks.shared());
}

TEST_F(CoreLockTest, WaitsForAnotherProcessAndSaysSoOnce) {
  Holder holder({0, 1}, folder_);
  const CoreLocks locks({0, 1}, {.timeout = 20s, .folder = folder_, .say = [&](const auto& line) {
                                   said_.push_back(line);
                                   holder.release();
                                 }});
  EXPECT_TRUE(locks.waited());
  EXPECT_FALSE(locks.shared());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0], "waiting for cores 0,1: in use by process " + std::to_string(holder.pid()));
}

TEST_F(CoreLockTest, GivesUpAfterTheTimeout) {
  const Holder holder({1}, folder_);
  try {
    const CoreLocks locks({0, 1}, {.timeout = 200ms, .folder = folder_});
    FAIL() << "went on with another process's cores";
  } catch (const std::runtime_error& error) {
    const std::string words = "are still in use by process " + std::to_string(holder.pid());
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
  const CoreLocks free({0}, {.timeout = 0s, .folder = folder_});
  EXPECT_FALSE(free.waited()) << "core 0 was not given back";
}

TEST_F(CoreLockTest, SharesTheCoresAfterTheTimeoutWhenToldTo) {
  const Holder holder({1}, folder_);
  const CoreLocks locks({0, 1}, {.timeout = 200ms, .share = true, .folder = folder_});
  EXPECT_TRUE(locks.waited());
  EXPECT_TRUE(locks.shared());
}

TEST_F(CoreLockTest, DoesNotMindOtherCores) {
  const Holder holder({2}, folder_);
  const CoreLocks locks({0, 1}, {.timeout = 0s, .folder = folder_});
  EXPECT_FALSE(locks.waited());
}

TEST_F(CoreLockTest, AKilledHolderFreesItsCores) {
  const Holder holder({0}, folder_);
  ::kill(holder.pid(), SIGKILL);
  const CoreLocks locks({0}, {.timeout = 20s, .folder = folder_});
  EXPECT_FALSE(locks.shared());
}

TEST_F(CoreLockTest, StopsWaitingWhenInterrupted) {
  const Interrupt interrupt;
  const Holder holder({0}, folder_);
  ::raise(SIGINT);
  const auto begin = std::chrono::steady_clock::now();
  const CoreLocks locks({0}, {.timeout = 60s, .folder = folder_, .interrupt = &interrupt});
  EXPECT_TRUE(locks.shared());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace stratagem::bench::core_lock_test
