#include "bench/launch/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/machine/signals.h"
#include "tests/bench/launch/shell_workers.h"
#include "tests/environment_variable.h"
#include "tests/temporary_folder.h"

namespace stratagem::bench::launch_test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// A worker that is a shell script: the job is behind descriptor 3, the result goes to 4.
LaunchOptions worker(const std::string& script) {
  LaunchOptions options;
  options.command = {"/bin/bash", "-c", script, "worker"};
  options.limit = 20s;
  return options;
}

bool exists(pid_t process) { return ::kill(process, 0) == 0 || errno != ESRCH; }

/// Waits for a process to be gone: one that was killed may need a moment to be collected.
bool disappears(pid_t process) {
  for (int attempt = 0; attempt < 500 && exists(process); ++attempt) {
    std::this_thread::sleep_for(10ms);
  }
  return !exists(process);
}

TEST(Launch, HandsTheJobOverAndTheResultBack) {
  const LaunchResult launched =
      launch(some_job(), worker(R"sh(printf '{"ok":true,"result":%s}' "$(cat <&3)" >&4)sh"));
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  EXPECT_EQ(launched.result, to_json(some_job()));
}

TEST(Launch, NamesTheDescriptorsOnTheCommandLine) {
  const LaunchResult launched =
      launch(some_job(), worker(R"(printf '{"ok":true,"result":"%s"}' "$*" >&4)"));
  EXPECT_EQ(launched.result, "--job-fd 3 --result-fd 4 --activity-fd 5");
}

TEST(Launch, AWorkerHasNoDescriptorThatSomebodyElseOpened) {
  const int other = ::fcntl(STDERR_FILENO, F_DUPFD, 20);  // without FD_CLOEXEC
  ASSERT_GE(other, 20);
  const std::string check = "[ ! -e /proc/self/fd/" + std::to_string(other) + " ] || exit 8; ";
  const LaunchResult launched =
      launch(some_job(), worker(check + R"(printf '{"ok":true,"result":1}' >&4)"));
  ::close(other);
  EXPECT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
}

TEST(Launch, CarriesLargeJobsAndResults) {
  const std::string text(3'000'000, 'x');
  const LaunchResult launched =
      launch(some_job(1, 5, text),
             worker(R"(printf '{"ok":true,"result":' >&4; cat <&3 >&4; printf '}' >&4)"));
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  EXPECT_EQ(launched.result, to_json(some_job(1, 5, text)));
}

TEST(Launch, DoesNotWaitForAWorkerThatIgnoresALargeJob) {
  const LaunchResult launched = launch(some_job(1, 5, std::string(3'000'000, 'x')),
                                       worker(R"(printf '{"ok":true,"result":1}' >&4)"));
  EXPECT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
}

TEST(Launch, IsNotBlockedByMuchOutput) {
  const LaunchResult launched = launch(
      some_job(),
      worker(
          R"(head -c 2000000 /dev/zero | tr '\0' 'e' >&2; printf '{"ok":true,"result":1}' >&4)"));
  EXPECT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
}

TEST(Launch, TellsAUsageErrorFromAFailure) {
  const auto answer = [](const std::string& kind) {
    return worker("printf '{\"ok\":false,\"kind\":\"" + kind +
                  "\",\"message\":\"split 0\",\"last_action\":\"1F3\"}' >&4; exit 2");
  };
  const LaunchResult usage = launch(some_job(), answer("usage"));
  EXPECT_EQ(usage.status, LaunchStatus::usage);
  EXPECT_EQ(usage.error.message, "split 0");
  const LaunchResult failure = launch(some_job(), answer("failure"));
  EXPECT_EQ(failure.status, LaunchStatus::failure);
  EXPECT_EQ(failure.error.last_action, "1F3");
}

TEST(Launch, NamesTheSignalOfACrash) {
  const LaunchResult launched =
      launch(some_job(), worker("echo 'about to crash' >&2; kill -SEGV $$"));
  EXPECT_EQ(launched.status, LaunchStatus::failure);
  EXPECT_EQ(launched.error.message, "rank 0 was terminated by signal 11 (SIGSEGV): about to crash");
  EXPECT_FALSE(launched.error.host.empty());
}

TEST(Launch, TakesSigkillForLackOfMemory) {
  const LaunchResult launched = launch(some_job(), worker("kill -KILL $$"));
  EXPECT_EQ(launched.error.message, "rank 0 was killed (out of memory?)");
}

TEST(Launch, ReportsAnExitWithoutAResult) {
  const LaunchResult launched =
      launch(some_job(), worker("printf 'first\\nlast words\\n\\n' >&2; exit 3"));
  EXPECT_EQ(launched.status, LaunchStatus::failure);
  EXPECT_EQ(launched.error.message, "rank 0 exited without a result, exit status 3: last words");
}

TEST(Launch, ReportsAResultThatIsNotJson) {
  const LaunchResult launched = launch(some_job(), worker("printf '{\"ok\":tr' >&4"));
  EXPECT_EQ(launched.status, LaunchStatus::failure);
  EXPECT_EQ(launched.error.message, "rank 0 returned 8 bytes that are not JSON");
}

TEST(Launch, NamesTheCrashWhenTheResultWasCutOff) {
  const LaunchResult launched =
      launch(some_job(), worker("printf '{\"ok\":tr' >&4; kill -ABRT $$"));
  EXPECT_EQ(launched.error.message, "rank 0 was terminated by signal 6 (SIGABRT)");
}

TEST(Launch, EndsAHangAndEverythingThatItStarted) {
  const TemporaryFolder folder;
  const std::string file = folder / "child";
  LaunchOptions options = worker("sleep 1000 & echo $! > '" + file + "'; wait");
  options.limit = 500ms;
  const LaunchResult launched = launch(some_job(), options);
  EXPECT_EQ(launched.status, LaunchStatus::hung);
  EXPECT_EQ(launched.error.message, "rank 0 hung: no result within 0.5 s; last action none");
  std::string child;
  std::ifstream(file) >> child;
  ASSERT_FALSE(child.empty());
  EXPECT_TRUE(disappears(std::stoi(child)));
}

TEST(Launch, DoesNotWaitTheWholeLimitForAStoppedWorker) {
  LaunchOptions options = worker("kill -STOP $$");
  options.limit = 100s;
  const LaunchResult launched = launch(some_job(1, 0.5), options);
  EXPECT_EQ(launched.status, LaunchStatus::hung);
  EXPECT_EQ(launched.error.message, "rank 0 was stopped (SIGSTOP?)");
}

TEST(Launch, EndsWhatAFinishedWorkerLeftBehind) {
  const LaunchResult launched =
      launch(some_job(), worker(R"(sleep 1000 & printf '{"ok":true,"result":%d}' $! >&4)"));
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  EXPECT_TRUE(disappears(launched.result.get<pid_t>()));
}

TEST(Launch, StopsWhenInterrupted) {
  const Interrupt interrupt;
  LaunchOptions options = worker("sleep 1000");
  options.interrupt = &interrupt;
  ::raise(SIGINT);
  const LaunchResult launched = launch(some_job(), options);
  EXPECT_EQ(launched.status, LaunchStatus::interrupted);
  EXPECT_TRUE(interrupt.raised());
}

TEST(Launch, LetsTheWorkerReceiveSignals) {
  const Interrupt interrupt;
  LaunchOptions options = worker("kill -TERM $$; sleep 1000");
  options.interrupt = &interrupt;
  const LaunchResult launched = launch(some_job(), options);
  EXPECT_EQ(launched.error.message, "rank 0 was terminated by signal 15 (SIGTERM)");
  EXPECT_FALSE(interrupt.raised());
}

TEST(Launch, LeavesTheNumberOfOpenMpThreadsToTheTask) {
  const EnvironmentVariable threads("OMP_NUM_THREADS", "1");
  const EnvironmentVariable other("STRATAGEM_TEST_VALUE", "kept");
  const LaunchResult launched = launch(
      some_job(),
      worker(
          R"(printf '{"ok":true,"result":"%s"}' "${OMP_NUM_THREADS-unset} $STRATAGEM_TEST_VALUE" >&4)"));
  EXPECT_EQ(launched.result, "unset kept");
}

/// A number that a program which begins anew does not have.
int& inherited() {
  static int number = 0;
  return number;
}

/// Gives what it has inherited and its own process group as its result.
void answer_from_a_fork(int argc, const char* const* argv) {
  const json answer{{"ok", true},
                    {"result",
                     {{"inherited", inherited()},
                      {"arguments", std::vector<std::string>(argv, argv + argc)},
                      {"leads_a_group", ::getpgrp() == ::getpid()},
                      {"has_20", ::fcntl(20, F_GETFD) >= 0}}}};
  const std::string text = answer.dump();
  ::_exit(::write(4, text.data(), text.size()) < 0 ? 1 : 0);
}

/// Waits until threads of earlier tests are gone. A sanitizer may have one of its own, which stays.
bool settles_alone() {
  for (int attempt = 0; attempt < 50 && !can_fork(); ++attempt) std::this_thread::sleep_for(10ms);
  return can_fork();
}

LaunchOptions worker_or_fork() {
  LaunchOptions options = worker(R"sh(printf '{"ok":true,"result":"began anew"}' >&4)sh");
  options.body = answer_from_a_fork;
  return options;
}

TEST(Launch, AForkOfThisProcessDoesAJobWithWhatItHas) {
  const int other = ::fcntl(STDERR_FILENO, F_DUPFD, 20);  // without FD_CLOEXEC
  inherited() = 7;
  const bool alone = settles_alone();
  const LaunchResult launched = launch(some_job(), worker_or_fork());
  ::close(other);
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  const json fork = {
      {"inherited", 7},
      {"arguments",
       {"stratagem", "worker", "--job-fd", "3", "--result-fd", "4", "--activity-fd", "5"}},
      {"leads_a_group", true},
      {"has_20", false}};
  EXPECT_EQ(launched.result, alone ? fork : json("began anew"));
}

TEST(Launch, AProcessWithThreadsIsNotForked) {
  std::atomic<bool> ended = false;
  const std::jthread other([&ended] { ended.wait(false); });
  EXPECT_FALSE(can_fork());
  const LaunchResult launched = launch(some_job(), worker_or_fork());
  ended = true;
  ended.notify_all();
  EXPECT_EQ(launched.result, "began anew");
}

TEST(Launch, AProcessWhoseLibrariesReadTheirThreadsIsNotForked) {
  const EnvironmentVariable threads("OMP_NUM_THREADS", "3");
  EXPECT_EQ(launch(some_job(), worker_or_fork()).result, "began anew");
}

TEST(Launch, AForkThatEndsWithoutAnAnswerFailed) {
  LaunchOptions options = worker_or_fork();
  options.body = [](int, const char* const*) { ::raise(SIGTERM); };
  if (!settles_alone()) options.command = {"/bin/bash", "-c", "kill -TERM $$"};
  const LaunchResult launched = launch(some_job(), options);
  EXPECT_EQ(launched.status, LaunchStatus::failure);
  EXPECT_NE(launched.error.message.find("SIGTERM"), std::string::npos) << launched.error.message;
}

TEST(Launch, SaysWhichProgramCannotBeStarted) {
  LaunchOptions options;
  options.command = {"/nonexistent/worker"};
  try {
    launch(some_job(), options);
    FAIL() << "started a program that is not there";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/worker"), std::string::npos);
  }
}

/// Ranks that are shell scripts, which find their number in the job.
LaunchResult launch_ranks(int count, const std::string& text) {
  LaunchOptions options;
  options.command = script(text);
  options.limit = 20s;
  return launch(some_job(count), options);
}

TEST(LaunchRanks, TheResultIsThatOfRankZero) {
  const LaunchResult launched = launch_ranks(3, say_ok);
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  EXPECT_EQ(launched.result, 0);
}

TEST(LaunchRanks, AllLearnWhereToMeetAndRankZeroGetsTheSocket) {
  const LaunchResult launched =
      launch_ranks(2, R"(if [ "$rank" = 0 ] && [ ! -S /proc/self/fd/6 ]; then exit 7; fi
                  if [ "$rank" = 1 ] && [ -e /proc/self/fd/6 ]; then exit 8; fi
                  printf '{"ok":true,"result":%s}' "$job" >&4)");
  ASSERT_EQ(launched.status, LaunchStatus::ok) << launched.error.message;
  const Job job = job_from_json(launched.result);
  const RendezvousPoint& store = header_of(job).rendezvous.value();
  EXPECT_EQ(store.info, (ranks::RankInfo{0, 2, 0, 2}));
  EXPECT_EQ(store.address, "127.0.0.1");
  EXPECT_GT(store.port, 1023);
}

TEST(LaunchRanks, ACrashIsTheCauseOfWhatTheOthersReport) {
  const LaunchResult launched = launch_ranks(3, R"(if [ "$rank" = 2 ]; then kill -KILL $$; fi
                  printf '{"ok":false,"kind":"communication","message":"lost rank 2"}' >&4; exit 4)");
  EXPECT_EQ(launched.status, LaunchStatus::failure);
  EXPECT_EQ(launched.error.rank, 2);
  EXPECT_EQ(launched.error.message, "rank 2 was killed (out of memory?)");
}

TEST(LaunchRanks, AnErrorOfItsOwnGoesBeforeOneAboutAnotherRank) {
  const LaunchResult launched =
      launch_ranks(2, R"(if [ "$rank" = 1 ]; then kind=failure; else kind=communication; fi
                  printf '{"ok":false,"kind":"%s","message":"of %s"}' $kind $rank >&4; exit 4)");
  EXPECT_EQ(launched.error.rank, 1);
  EXPECT_EQ(launched.error.message, "of 1");
}

TEST(LaunchRanks, ARankThatGoesOnAloneIsEnded) {
  const auto start = std::chrono::steady_clock::now();
  const LaunchResult launched =
      launch_ranks(2, R"(if [ "$rank" = 1 ]; then exit 3; fi; sleep 100)");
  EXPECT_EQ(launched.error.rank, 1);
  EXPECT_EQ(launched.error.message, "rank 1 exited without a result, exit status 3");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

// Whether the others lose the connection or their patience first is chance.
TEST(LaunchRanks, AStoppedRankIsNamed) {
  for (const std::string kind : {"communication", "timeout"}) {
    SCOPED_TRACE(kind);
    const std::string answer = R"(printf '{"ok":false,"kind":")" + kind + R"("}' >&4; exit 4)";
    const LaunchResult launched =
        launch_ranks(2, R"(if [ "$rank" = 1 ]; then kill -STOP $$; fi; )" + answer);
    EXPECT_EQ(launched.status, LaunchStatus::hung);
    EXPECT_EQ(launched.error.rank, 1);
    EXPECT_EQ(launched.error.message, "rank 1 was stopped (SIGSTOP?) while the other ranks waited");
  }
}

}  // namespace
}  // namespace stratagem::bench::launch_test
