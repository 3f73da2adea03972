// Who started this process, and which of how many it is.
//
// The same binary runs as one process, under its own spawner, and under torchrun, mpirun (Open
// MPI), mpiexec (MPICH and Intel MPI: Hydra's PMI variables) and srun, which set different
// variables. The order of the checks matters: torchrun inside a Slurm job also sees Slurm's
// variables, and so does every mpirun or mpiexec rank inside sbatch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stratagem::ranks {

enum class Launcher { none, environment, torchrun, mpirun, mpiexec, srun };

/// "torchrun", as shown to the user.
std::string to_string(Launcher launcher);

/// A process among those of a job.
struct RankInfo {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        // among those of this host
  int local_world_size = 1;  // how many of them this host has

  bool operator==(const RankInfo&) const = default;
};

struct LauncherEnvironment {
  Launcher launcher = Launcher::none;
  RankInfo info;
  /// Where rank 0 serves the store; empty: not told (all ranks on this host: loopback).
  std::string master_address;
  std::optional<std::uint16_t> master_port;
  /// The launcher itself serves the store at that place, so rank 0 is a client like the others.
  bool launcher_serves_store = false;
  /// Differs between runs that could meet at one store, and between restarts of one.
  std::string run_id;
  /// Where no launcher is known: "PMIX_RANK=1", a variable by which another MPI numbers processes.
  std::string unknown_rank;
};

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// What the process's own environment says of `name`.
std::optional<std::string> process_environment(const std::string& name);

/// Throws std::invalid_argument, one line with the variable, where a launcher's words are missing
/// or make no sense.
LauncherEnvironment detect_launcher(const EnvironmentLookup& look_up = process_environment);

/// The tasks of each node as Slurm writes them: "2(x3),1" gives 2, 2, 2, 1. Empty for any other
/// text, and for counts that do not sum to `tasks`.
std::vector<int> slurm_tasks_per_node(const std::string& text, int tasks);

/// The first host of a list as Slurm writes it: "n[0-1],m3" gives "n0".
std::string first_slurm_host(const std::string& list);

/// A port from 12000 to 31999 that is the same for equal texts, for launchers that name none. Two
/// jobs of one host rarely get the same. Linux gives ports from 32768 to outgoing connections, so
/// a higher one could be taken by any program.
std::uint16_t port_from(const std::string& text);

}  // namespace stratagem::ranks
