// Runs a command that a launcher (torchrun, mpirun, srun, or by hand) may have started. It finds
// which rank this process is, fits the rows to the number of ranks, and lets a single process or
// the first rank do the work, while the other ranks follow the first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch/rendezvous.h"

namespace stratagem::bench {

class LauncherSession {
 public:
  /// Throws std::invalid_argument, one line, if the options and the environment conflict.
  explicit LauncherSession(const LauncherOptions& options,
                           const ranks::EnvironmentLookup& look_up = ranks::process_environment);

  bool is_alone() const { return !launcher_; }
  /// Returns whether this is the only process or the first rank: the one that prints.
  bool is_first() const { return is_alone() || launcher_->info.rank == 0; }

  /// Returns the most cores of a row that the user did not ask for (bench/config/grid.h): those of
  /// a single process. fit() handles ranks with cores of their own.
  std::int64_t baseline_cores() const;
  /// Gives the selection the launcher's number of ranks. Throws std::invalid_argument.
  void fit(Selection& selection) const;
  /// Sets `ranks` to the launcher's number; `by_user`: the user has given `ranks`.
  void fit(std::int64_t& ranks, bool by_user) const;
  /// Keeps the rows that one rank or all ranks can run. Throws std::invalid_argument.
  void fit(std::vector<Config>& rows) const;

  /// Prints `why` on the first rank; returns the exit code.
  int nothing_matched(const std::string& why) const;

  using Body = std::function<int(const Interrupt&, Cluster*)>;
  /// On the only process or the first rank: returns what `body` returns, which gets the cluster of
  /// the ranks, or null. On the others: follows the first one, and returns its exit code.
  int run(const RendezvousSettings& settings, const Body& body) const;

 private:
  std::optional<LauncherContext> launcher_;
};

}  // namespace stratagem::bench
