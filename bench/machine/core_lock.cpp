#include "bench/machine/core_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "bench/machine/machine.h"

namespace stratagem::bench {

namespace {

constexpr auto retry_interval = std::chrono::milliseconds(100);

std::filesystem::path default_folder() {
  const char* chosen = std::getenv("STRATAGEM_LOCK_FOLDER");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::filesystem::path memory = "/dev/shm";
  if (::access(memory.c_str(), W_OK) == 0) return memory;
  return temporary_folder();
}

// A file of another user in a folder open to all may not be opened for creation; to lock it, it
// need only be read.
runtime::UniqueFd open_lock(const std::filesystem::path& path) {
  runtime::UniqueFd existing(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (existing) return existing;
  runtime::UniqueFd created(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (created) return created;
  return runtime::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

bool try_lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

// Names the holder for a waiting process; without write permission it names none.
void leave_process_id(int fd) {
  const std::string text = fmt::format("{}\n", getpid());
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return;
  }
}

std::string holder(int fd) {
  std::array<char, 32> text{};
  const ssize_t count = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string line(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return line.empty() ? "another process" : "process " + line.substr(0, line.find('\n'));
}

}  // namespace

CoreLocks::CoreLocks(std::vector<int> cores, const CoreLockOptions& options) {
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  const auto folder = options.folder.empty() ? default_folder() : options.folder;
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  const auto interrupted = [&] {
    return options.interrupt != nullptr && options.interrupt->raised();
  };
  const auto give_up = [&] {
    return std::chrono::steady_clock::now() >= deadline || interrupted();
  };
  for (const int core : cores) {
    runtime::UniqueFd lock = open_lock(folder / fmt::format("stratagem-cpu-{}.lock", core));
    if (!lock) continue;
    bool locked = try_lock(lock.get());
    if (!locked && !waited_ && options.say) {
      options.say(fmt::format("waiting for cores {}: in use by {}", fmt::join(cores, ","),
                              holder(lock.get())));
    }
    waited_ = waited_ || !locked;
    while (!locked && !give_up()) {
      std::this_thread::sleep_for(retry_interval);
      locked = try_lock(lock.get());
    }
    if (!locked) {
      shared_ = true;
      if (options.share || interrupted()) continue;
      throw std::runtime_error(
          fmt::format("cores {} are still in use by {} after {:g} s; --timeout waits longer, "
                      "--oversubscribe shares them",
                      fmt::join(cores, ","), holder(lock.get()), options.timeout.count()));
    }
    leave_process_id(lock.get());
    held_.push_back(std::move(lock));
  }
}

}  // namespace stratagem::bench
