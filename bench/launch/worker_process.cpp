#include "bench/launch/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/launch/exit_codes.h"
#include "bench/launch/launch.h"
#include "reports/write_all.h"

namespace stratagem::bench {
namespace {

constexpr int job_target = 3;
constexpr int result_target = 4;
constexpr int activity_target = 5;
// Descriptors to be renumbered for the child lie above its targets, so that none overwrites
// another.
constexpr int lowest_source = 16;
constexpr const char* shown_name = "stratagem";  // instead of /proc/self/exe

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

runtime::UniqueFd raised(int fd) {
  runtime::UniqueFd high(fcntl(fd, F_DUPFD_CLOEXEC, lowest_source));
  if (!high && errno == EINVAL) errno = EMFILE;  // the limit lies below lowest_source
  if (!high) fail("cannot start a worker");
  return high;
}

struct Pipe {
  runtime::UniqueFd read_end;
  runtime::UniqueFd write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot start a worker");
  runtime::UniqueFd read_end(ends[0]);
  runtime::UniqueFd low_write_end(ends[1]);
  fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return {std::move(read_end), raised(low_write_end.get())};
}

// Uses a file in memory instead of a pipe: a worker that does not read its job blocks nobody.
runtime::UniqueFd memory_file(const std::string& text) {
  runtime::UniqueFd file(memfd_create("job", MFD_CLOEXEC));
  if (!file) fail("memfd_create");
  if (reports::write_all(file.get(), text) != 0) fail("write");
  lseek(file.get(), 0, SEEK_SET);
  return raised(file.get());
}

// Keeps the library's default, one thread a core: the tasks set the threads of every device
// themselves.
std::vector<char*> worker_environment() {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("OMP_NUM_THREADS=")) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  return environment;
}

sigset_t mask_for_child(const Interrupt* interrupt) {
  if (interrupt != nullptr) return interrupt->original_mask();
  sigset_t current;
  pthread_sigmask(SIG_SETMASK, nullptr, &current);
  return current;
}

/// Holds what a worker's process begins with.
struct Beginning {
  std::vector<std::pair<int, int>> descriptors;  // this process's, and their numbers in the worker
  int first_closed;                              // it and all above are closed in the worker
  sigset_t mask;
};

class SpawnSettings {
 public:
  explicit SpawnSettings(const Beginning& beginning) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    for (const auto& [source, target] : beginning.descriptors) {
      posix_spawn_file_actions_adddup2(&actions, source, target);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, beginning.first_closed);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &beginning.mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawned(std::vector<std::string> command, const Beginning& beginning) {
  const std::string program = command.front();
  command.front() = shown_name;
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> environment = worker_environment();
  const SpawnSettings settings(beginning);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                                arguments.data(), environment.data());
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "cannot start " + program);
  return pid;
}

/// Gives the fork its descriptors and drops this process's buffered output. Returns false if one is
/// missing.
bool take_descriptors(const Beginning& beginning) {
  __fpurge(stdout);
  __fpurge(stderr);
  for (const auto& [source, target] : beginning.descriptors) {
    if (::dup2(source, target) < 0) return false;
  }
  // Without a standard input another descriptor may have its number, which no exec closes here.
  if ((::fcntl(STDIN_FILENO, F_GETFD) & FD_CLOEXEC) != 0) ::close(STDIN_FILENO);
  ::closefrom(beginning.first_closed);
  return true;
}

/// Starts a fork, which has the libraries and plug-ins that this process has loaded.
pid_t forked(WorkerBody body, std::vector<std::string> arguments, const Beginning& beginning) {
  const std::vector<char*> pointers = pointers_to(arguments);
  const pid_t pid = ::fork();
  if (pid < 0) fail("cannot start a worker");
  if (pid > 0) {
    ::setpgid(pid, pid);  // both processes do it, and either may be first
    return pid;
  }
  ::setpgid(0, 0);
  if (!take_descriptors(beginning)) ::_exit(exit_codes::lost);
  pthread_sigmask(SIG_SETMASK, &beginning.mask, nullptr);
  body(static_cast<int>(arguments.size()), pointers.data());
  ::_exit(exit_codes::lost);
}

}  // namespace

bool can_fork() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads)) == 1 &&
         std::getenv("OMP_NUM_THREADS") == nullptr;
}

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, WorkerBody body,
                             const std::string& job, int progress_fd, int store_fd,
                             const Interrupt* interrupt) {
  const runtime::UniqueFd job_source = memory_file(job);
  const runtime::UniqueFd activity_source = raised(progress_fd);
  const runtime::UniqueFd store_source = store_fd < 0 ? runtime::UniqueFd() : raised(store_fd);
  Pipe result = make_pipe();
  Pipe output = make_pipe();
  Beginning beginning{.descriptors = {{job_source.get(), job_target},
                                      {result.write_end.get(), result_target},
                                      {activity_source.get(), activity_target},
                                      {output.write_end.get(), STDOUT_FILENO},
                                      {output.write_end.get(), STDERR_FILENO}},
                      .first_closed = inherited_store_fd,
                      .mask = mask_for_child(interrupt)};
  if (store_source) {
    beginning.descriptors.emplace_back(store_source.get(), inherited_store_fd);
    beginning.first_closed = inherited_store_fd + 1;
  }
  const std::vector<std::string> descriptors = {"--job-fd",      std::to_string(job_target),
                                                "--result-fd",   std::to_string(result_target),
                                                "--activity-fd", std::to_string(activity_target)};
  const bool forks = body != nullptr && can_fork();
  std::vector<std::string> arguments =
      forks ? std::vector<std::string>{shown_name, "worker"} : command;
  arguments.insert(arguments.end(), descriptors.begin(), descriptors.end());
  pid_ = forks ? forked(body, std::move(arguments), beginning)
               : spawned(std::move(arguments), beginning);
  result_ = std::move(result.read_end);
  output_ = std::move(output.read_end);
}

WorkerProcess::~WorkerProcess() { kill(); }

// The leader's number stays taken until it is collected, so the group is ended first: no other
// process can be hit.
bool WorkerProcess::ended() {
  if (pid_ < 0) return true;
  siginfo_t information{};
  const int found =
      waitid(P_PID, static_cast<id_t>(pid_), &information, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && information.si_pid == 0) return false;
  kill();
  return true;
}

void WorkerProcess::kill() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  while (waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace stratagem::bench
