// Keeps two measurements off the same cores.
//
// A second run would halve the first one's speed and its own. So a run that measures on a CPU core
// locks it until it ends, by a file in memory that every user of the machine can open. A second run
// reports that it waits; after a limited time it ends, unless it may share. Cores are locked in
// ascending order, so two runs never wait for each other. The files lie in $STRATAGEM_LOCK_FOLDER,
// else in /dev/shm, else in the folder for temporary files.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/machine/signals.h"
#include "strategies/runtime/unique_fd.h"

namespace stratagem::bench {

struct CoreLockOptions {
  std::chrono::duration<double> timeout{120};
  bool share = false;                    // uses another run's cores after the timeout
  std::filesystem::path folder;          // empty: see above
  const Interrupt* interrupt = nullptr;  // may be null
  /// Called once, when waiting begins: "waiting for cores 0,1: in use by process 4711".
  std::function<void(const std::string&)> say = {};
};

class CoreLocks {
 public:
  /// Holds the cores. After the timeout it throws std::runtime_error or shares them; after an
  /// interrupt it holds those that it got.
  CoreLocks(std::vector<int> cores, const CoreLockOptions& options);

  bool waited() const { return waited_; }
  /// Returns whether some core is still another run's.
  bool shared() const { return shared_; }

 private:
  std::vector<runtime::UniqueFd> held_;
  bool waited_ = false;
  bool shared_ = false;
};

}  // namespace stratagem::bench
