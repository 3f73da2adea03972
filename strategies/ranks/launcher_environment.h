// The launcher of this process, its rank and the number of ranks.
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

/// Returns "torchrun", the name for the user.
std::string to_string(Launcher launcher);

/// A process among those of a job.
struct RankInfo {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        // its number among this host's processes
  int local_world_size = 1;  // the number of processes on this host

  bool operator==(const RankInfo&) const = default;
};

struct LauncherEnvironment {
  Launcher launcher = Launcher::none;
  RankInfo info;
  /// The address of rank 0's store; empty: not given (all ranks on this host: loopback).
  std::string master_address;
  std::optional<std::uint16_t> master_port;
  /// The launcher itself runs the store there, so rank 0 is a client like the others.
  bool launcher_serves_store = false;
  /// The id differs between runs that could meet at one store, and between restarts of a run.
  std::string run_id;
  /// A variable by which an unknown MPI numbers processes, "PMIX_RANK=1", if no launcher is known.
  std::string unknown_rank;
};

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Returns `name` in the process's environment.
std::optional<std::string> process_environment(const std::string& name);

/// Throws std::invalid_argument, in one line with the variable, if a launcher's variables are
/// missing or invalid.
LauncherEnvironment detect_launcher(const EnvironmentLookup& look_up = process_environment);

/// Returns the tasks of each node from Slurm's text: "2(x3),1" gives 2, 2, 2, 1. Returns an empty
/// list for any other text, and for counts that do not sum to `tasks`.
std::vector<int> slurm_tasks_per_node(const std::string& text, int tasks);

/// Returns the first host of Slurm's list: "n[0-1],m3" gives "n0".
std::string first_slurm_host(const std::string& list);

/// Returns a port from 12000 to 31999 that is the same for equal texts, for launchers that give
/// none. Two jobs of one host rarely get the same. Linux uses ports from 32768 on for outgoing
/// connections, so any program could take a higher one.
std::uint16_t port_from(const std::string& text);

}  // namespace stratagem::ranks
