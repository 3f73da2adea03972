#include "bench/launch/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <string_view>
#include <system_error>

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

// A file in memory rather than a pipe: a worker that does not read its job blocks nobody.
runtime::UniqueFd memory_file(const std::string& text) {
  runtime::UniqueFd file(memfd_create("job", MFD_CLOEXEC));
  if (!file) fail("memfd_create");
  if (reports::write_all(file.get(), text) != 0) fail("write");
  lseek(file.get(), 0, SEEK_SET);
  return raised(file.get());
}

// The library's own default, one thread a core, must not be changed from outside: the tasks set
// the threads of every device themselves.
std::vector<char*> worker_environment() {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("OMP_NUM_THREADS=")) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  return environment;
}

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void map(int source, int target) { posix_spawn_file_actions_adddup2(&actions, source, target); }
  /// Keeps descriptors that other threads have open at this moment from the worker.
  void close_from(int first) { posix_spawn_file_actions_addclosefrom_np(&actions, first); }
  void set_group_and_mask(const sigset_t& mask) {
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

sigset_t mask_for_child(const Interrupt* interrupt) {
  if (interrupt != nullptr) return interrupt->original_mask();
  sigset_t current;
  pthread_sigmask(SIG_SETMASK, nullptr, &current);
  return current;
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> command, const std::string& job,
                             int progress_fd, int store_fd, const Interrupt* interrupt) {
  const runtime::UniqueFd job_source = memory_file(job);
  const runtime::UniqueFd activity_source = raised(progress_fd);
  const runtime::UniqueFd store_source = store_fd < 0 ? runtime::UniqueFd() : raised(store_fd);
  Pipe result = make_pipe();
  Pipe output = make_pipe();

  command.insert(command.end(),
                 {"--job-fd", std::to_string(job_target), "--result-fd",
                  std::to_string(result_target), "--activity-fd", std::to_string(activity_target)});
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  std::string shown_name = "stratagem";  // in the place of /proc/self/exe
  arguments.front() = shown_name.data();
  arguments.push_back(nullptr);
  std::vector<char*> environment = worker_environment();

  SpawnSettings settings;
  settings.map(job_source.get(), job_target);
  settings.map(result.write_end.get(), result_target);
  settings.map(activity_source.get(), activity_target);
  if (store_source) settings.map(store_source.get(), inherited_store_fd);
  settings.map(output.write_end.get(), STDOUT_FILENO);
  settings.map(output.write_end.get(), STDERR_FILENO);
  settings.close_from(store_source ? inherited_store_fd + 1 : inherited_store_fd);
  settings.set_group_and_mask(mask_for_child(interrupt));
  const int error = posix_spawn(&pid_, command.front().c_str(), &settings.actions,
                                &settings.attributes, arguments.data(), environment.data());
  if (error != 0) {
    pid_ = -1;
    throw std::system_error(error, std::generic_category(), "cannot start " + command.front());
  }
  result_ = std::move(result.read_end);
  output_ = std::move(output.read_end);
}

WorkerProcess::~WorkerProcess() { kill(); }

// The leader's number stays taken until it is collected, so the group is ended first: nobody else
// can be hit.
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
