// Finds the other ranks, from the launcher's environment or the command line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/config/config.h"
#include "bench/config/selection.h"
#include "bench/launch/cluster.h"

namespace CLI {
class App;
}

namespace stratagem::bench {

/// The options as typed.
struct LauncherOptions {
  std::string init_method = {};  // env://, tcp://HOST:PORT, file://PATH; empty: env://
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
};

void add_launcher_options(CLI::App& app, LauncherOptions& options);

/// The place at which this process meets the others, and its rank.
struct LauncherContext {
  std::string launcher;
  ranks::RankInfo info;
  ranks::StoreEndpoint store;
};

/// Returns nothing for a single process. Throws std::invalid_argument, one line, if options are
/// missing or contradict one another or the environment.
std::optional<LauncherContext> launcher_context(const LauncherOptions& options,
                                                const ranks::EnvironmentLookup& look_up);

/// Fits a selection to a launcher's ranks: --ranks is absent or equals their number, and there are
/// as many devices unless the user gives another number. Throws std::invalid_argument.
void apply_world_size(Selection& selection, const LauncherContext& launcher_context);

/// Requires that every row runs on one rank or on all. Throws std::invalid_argument, also if
/// devices, mesh and ranks do not fit one another. Drops the baseline with all the job's cores if
/// this rank has fewer of them.
void fit_rows(std::vector<Config>& rows, const LauncherContext& launcher_context);

using StoreConnector =
    std::unique_ptr<ranks::KeyValueStore> (*)(const ranks::StoreEndpoint& endpoint);

/// The settings by which the ranks find each other.
struct RendezvousSettings {
  StoreConnector open = nullptr;
  double timeout = 120;  // seconds
  bool verbose = false;  // shows what the workers of the other ranks print
};

/// Joins the cluster of all ranks.
std::unique_ptr<Cluster> rendezvous(const LauncherContext& launcher_context,
                                    const RendezvousSettings& settings, const Interrupt& interrupt);

}  // namespace stratagem::bench
