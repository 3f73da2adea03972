// How a process finds its cluster: the launcher's words in the environment, or the command line's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cluster.h"
#include "bench/config.h"
#include "bench/selection.h"

namespace CLI {
class App;
}

namespace stratagem::bench {

/// As typed.
struct JoinOptions {
  std::string init_method = {};  // env://, tcp://HOST:PORT, file://PATH; empty: env://
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
};

void add_join_options(CLI::App& app, JoinOptions& options);

/// Where and as which rank this process is to meet the others.
struct Invitation {
  std::string launcher;
  runtime::RankPlace place;
  runtime::MeetingPlace meeting;
};

/// Nothing for a process alone. Throws std::invalid_argument, one line, where options are missing
/// or contradict one another or the environment.
std::optional<Invitation> invitation(const JoinOptions& options,
                                     const runtime::EnvironmentLookup& look_up);

/// Under a launcher the ranks are there already: --ranks is absent or equals their number, and
/// there are as many devices unless the user says otherwise. Throws std::invalid_argument.
void fit_to_world(Selection& selection, const Invitation& invitation);

/// Every row runs on one rank or on all. Throws std::invalid_argument, also where devices, mesh and
/// ranks do not fit one another. The baseline with all the job's cores falls out where this rank
/// was given fewer of them.
void fit_rows(std::vector<Config>& rows, const Invitation& invitation);

/// What the option `timeout` of the selection says, in seconds.
std::chrono::duration<double> timeout_of(const Selection& selection);

using MeetingOpener = std::unique_ptr<runtime::Meeting> (*)(const runtime::MeetingPlace& place);

/// Meets the others.
std::unique_ptr<Cluster> join(const Invitation& invitation, std::chrono::duration<double> timeout,
                              const Interrupt& interrupt, bool verbose, MeetingOpener open);

}  // namespace stratagem::bench
