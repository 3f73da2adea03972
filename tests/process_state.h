// A test leaves its process as it was: tests run in any order, any number of them in one process.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace stratagem {

/// What the tests of a process share, by name.
using ProcessState = std::map<std::string, std::string>;

/// Adds the variables of the environment.
inline void add_environment(ProcessState& state) {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = std::min(text.find('='), text.size());
    state["$" + std::string(text.substr(0, equals))] = text.substr(equals);
  }
}

/// Adds which signals this thread blocks and what becomes of each.
inline void add_signals(ProcessState& state) {
  sigset_t blocked{};
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (const int number : std::array{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2,
                                     SIGALRM, SIGCHLD, SIGABRT, SIGSEGV}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    state["signal " + std::to_string(number)] =
        (sigismember(&blocked, number) == 1 ? "blocked, handler " : "handler ") +
        std::to_string(reinterpret_cast<std::uintptr_t>(action.sa_handler));
  }
}

/// What every process has.
inline ProcessState process_state() {
  ProcessState state;
  add_environment(state);
  add_signals(state);
  state["working folder"] = std::filesystem::current_path().string();
  cpu_set_t processors{};
  sched_getaffinity(0, sizeof(processors), &processors);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &processors)) state["processors"] += std::to_string(processor) + " ";
  }
  siginfo_t child{};
  const bool none = ::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0;
  state["child processes"] = none && errno == ECHILD ? "none" : "some";
  return state;
}

/// Fails each test that ends in another state than it began in. Records each test's processor time.
class ProcessStateCheck : public testing::EmptyTestEventListener {
 public:
  explicit ProcessStateCheck(std::function<ProcessState()> state) : state_(std::move(state)) {}

  void OnTestStart(const testing::TestInfo& /*test*/) override {
    before_ = state_();
    start_ = std::clock();
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    const double seconds = static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC;
    testing::Test::RecordProperty("processor_ms", static_cast<int>(seconds * 1000));
    ProcessState after = state_();
    for (const auto& [name, value] : before_) {
      EXPECT_EQ(after[name], value) << name << ": the test leaves it changed";
    }
    for (const auto& [name, value] : after) {
      EXPECT_TRUE(before_.contains(name)) << name << ": the test leaves it behind: " << value;
    }
  }

 private:
  std::function<ProcessState()> state_;
  ProcessState before_;
  std::clock_t start_ = 0;
};

/// Returns true, so that a constant can hold it.
inline bool check_process_state(std::function<ProcessState()> state) {
  auto check = std::make_unique<ProcessStateCheck>(std::move(state));
  testing::UnitTest::GetInstance()->listeners().Append(check.release());
  return true;
}

}  // namespace stratagem
