// The front door of a command that a launcher (torchrun, mpirun, srun, or by hand) may start: finds
// out which rank this process is, fits the rows to the number of ranks, and lets a process alone or
// the first rank do the work, and the other ranks what the first one asks for.
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
  /// Throws std::invalid_argument, one line, where the options and the environment contradict.
  explicit LauncherSession(const LauncherOptions& options,
                           const ranks::EnvironmentLookup& look_up = ranks::process_environment);

  bool is_alone() const { return !launcher_; }
  /// Whether it is alone or the first of the ranks: the one that prints.
  bool is_first() const { return is_alone() || launcher_->info.rank == 0; }

  /// The most cores of a row that nobody asked for (bench/config/grid.h): those that a process
  /// alone may use. fit() sees to it where ranks have cores of their own.
  std::int64_t baseline_cores() const;
  /// Gives the selection the launcher's number of ranks. Throws std::invalid_argument.
  void fit(Selection& selection) const;
  /// Likewise; `by_user`: the user has given `ranks`.
  void fit(std::int64_t& ranks, bool by_user) const;
  /// Keeps the rows that one rank or all ranks can run. Throws std::invalid_argument.
  void fit(std::vector<Config>& rows) const;

  /// Prints on the first rank why; returns the exit code.
  int nothing_matched(const std::string& why) const;

  using Body = std::function<int(const Interrupt&, Cluster*)>;
  /// Alone or on the first rank: returns what `body` returns; it is given the cluster of the ranks,
  /// or null. On the others: does what the first one asks for, and returns its exit code.
  int run(const RendezvousSettings& settings, const Body& body) const;

 private:
  std::optional<LauncherContext> launcher_;
};

}  // namespace stratagem::bench
