#include "strategies/ranks/launcher_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "strategies/runtime/parse.h"

namespace stratagem::ranks {
namespace {

/// Reads one launcher's variables.
class Reader {
 public:
  Reader(const EnvironmentLookup& look_up, Launcher launcher)
      : look_up_(look_up), launcher_(launcher) {}

  int number(const std::string& name, int low) const {
    const auto text = look_up_(name);
    if (!text) throw missing(name);
    return parsed(name, *text, low);
  }

  int number_or(const std::string& name, int low, int otherwise) const {
    const auto text = look_up_(name);
    return text ? parsed(name, *text, low) : otherwise;
  }

  std::string text_or(const std::string& name, const std::string& otherwise) const {
    return look_up_(name).value_or(otherwise);
  }

  std::optional<std::uint16_t> port(const std::string& name) const {
    const auto text = look_up_(name);
    if (!text) return std::nullopt;
    const int value = parsed(name, *text, 1);
    if (value > std::numeric_limits<std::uint16_t>::max()) {
      throw wrong(name, *text, "a port from 1 to 65535");
    }
    return static_cast<std::uint16_t>(value);
  }

  /// Returns this node's number of tasks in a Slurm step of `tasks` tasks on several nodes.
  int slurm_tasks_of_own_node(int tasks) const {
    const std::string name = "SLURM_STEP_TASKS_PER_NODE";
    const auto text = look_up_(name);
    if (!text) throw missing(name);
    const std::vector<int> counts = slurm_tasks_per_node(*text, tasks);
    if (counts.empty()) throw wrong(name, *text, fmt::format("a list of {} tasks", tasks));
    const int node = number("SLURM_NODEID", 0);
    if (node < static_cast<int>(counts.size())) return counts[static_cast<std::size_t>(node)];
    throw wrong("SLURM_NODEID", std::to_string(node),
                fmt::format("one of {} nodes", counts.size()));
  }

 private:
  int parsed(const std::string& name, const std::string& text, int low) const {
    const auto value = runtime::number_in<int>(text);
    if (value && *value >= low) return *value;
    throw wrong(name, text, fmt::format("a whole number of {} or more", low));
  }

  std::invalid_argument missing(const std::string& name) const {
    return std::invalid_argument(
        fmt::format("{}: {} is not set in the environment; set it, or start the ranks by hand "
                    "with --init-method, --rank and --world-size",
                    to_string(launcher_), name));
  }

  std::invalid_argument wrong(const std::string& name, const std::string& text,
                              const std::string& right) const {
    return std::invalid_argument(
        fmt::format("{}: {}={} is not {}", to_string(launcher_), name, text, right));
  }

  const EnvironmentLookup& look_up_;
  Launcher launcher_;
};

void require_order(const LauncherEnvironment& found) {
  const auto& [rank, world_size, local_rank, local_world_size] = found.info;
  if (rank < world_size && local_rank < local_world_size && local_world_size <= world_size) return;
  throw std::invalid_argument(fmt::format("{}: rank {} of {}, local rank {} of {}: out of range",
                                          to_string(found.launcher), rank, world_size, local_rank,
                                          local_world_size));
}

/// Reads the variables of torchrun, or RANK and WORLD_SIZE set by hand.
LauncherEnvironment from_torchrun(const EnvironmentLookup& look_up, Launcher launcher) {
  const Reader read(look_up, launcher);
  LauncherEnvironment found;
  found.launcher = launcher;
  found.info.rank = read.number("RANK", 0);
  found.info.world_size = read.number("WORLD_SIZE", 1);
  found.info.local_rank = read.number_or("LOCAL_RANK", 0, found.info.rank);
  found.info.local_world_size = read.number_or("LOCAL_WORLD_SIZE", 1, found.info.world_size);
  found.master_address = read.text_or("MASTER_ADDR", "");
  found.master_port = read.port("MASTER_PORT");
  found.launcher_serves_store = look_up("TORCHELASTIC_USE_AGENT_STORE") == "True";
  found.run_id = read.text_or("TORCHELASTIC_RUN_ID", "") + "." +
                 read.text_or("TORCHELASTIC_RESTART_COUNT", "0");
  return found;
}

LauncherEnvironment from_mpirun(const EnvironmentLookup& look_up) {
  const Reader read(look_up, Launcher::mpirun);
  LauncherEnvironment found;
  found.launcher = Launcher::mpirun;
  found.info = {.rank = read.number("OMPI_COMM_WORLD_RANK", 0),
                .world_size = read.number("OMPI_COMM_WORLD_SIZE", 1),
                .local_rank = read.number("OMPI_COMM_WORLD_LOCAL_RANK", 0),
                .local_world_size = read.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
  found.run_id = read.text_or("PMIX_NAMESPACE", "");
  found.master_address = read.text_or("MASTER_ADDR", "");
  found.master_port = read.port("MASTER_PORT");
  if (!found.master_port) found.master_port = port_from("mpirun " + found.run_id);
  return found;
}

/// Hydra's environment has nothing that only the ranks of one run share, so this finds no port.
LauncherEnvironment from_mpiexec(const EnvironmentLookup& look_up) {
  const Reader read(look_up, Launcher::mpiexec);
  LauncherEnvironment found;
  found.launcher = Launcher::mpiexec;
  found.info.rank = read.number("PMI_RANK", 0);
  found.info.world_size = read.number("PMI_SIZE", 1);
  found.info.local_rank = read.number_or("MPI_LOCALRANKID", 0, found.info.rank);
  found.info.local_world_size = read.number_or("MPI_LOCALNRANKS", 1, found.info.world_size);
  found.master_address = read.text_or("MASTER_ADDR", "");
  found.master_port = read.port("MASTER_PORT");
  return found;
}

LauncherEnvironment from_srun(const EnvironmentLookup& look_up) {
  const Reader read(look_up, Launcher::srun);
  LauncherEnvironment found;
  found.launcher = Launcher::srun;
  const int tasks = read.number("SLURM_STEP_NUM_TASKS", 1);
  const int hosts = read.number_or("SLURM_STEP_NUM_NODES", 1, 1);
  found.info = {.rank = read.number("SLURM_PROCID", 0),
                .world_size = tasks,
                .local_rank = read.number("SLURM_LOCALID", 0),
                .local_world_size = hosts == 1 ? tasks : read.slurm_tasks_of_own_node(tasks)};
  found.run_id = read.text_or("SLURM_JOB_ID", "0") + "." + read.text_or("SLURM_STEP_ID", "0");
  found.master_address = read.text_or("MASTER_ADDR", "");
  if (found.master_address.empty() && hosts > 1) {
    found.master_address = first_slurm_host(read.text_or("SLURM_STEP_NODELIST", ""));
  }
  found.master_port = read.port("MASTER_PORT");
  if (!found.master_port) found.master_port = port_from("srun " + found.run_id);
  return found;
}

/// Variables by which unsupported MPIs number the processes of a job.
constexpr std::array unknown_ranks = {"PMIX_RANK", "PMI_RANK", "PMI_ID", "MV2_COMM_WORLD_RANK",
                                      "PALS_RANKID"};

LauncherEnvironment detected(const EnvironmentLookup& look_up) {
  const auto has = [&](const char* name) { return look_up(name).has_value(); };
  if (has("TORCHELASTIC_RUN_ID")) return from_torchrun(look_up, Launcher::torchrun);
  if (has("RANK") && has("WORLD_SIZE")) return from_torchrun(look_up, Launcher::environment);
  if (has("OMPI_COMM_WORLD_RANK")) return from_mpirun(look_up);
  // A batch script or salloc has SLURM_PROCID without a step and is not a rank.
  const bool in_step = has("SLURM_STEP_ID") && has("SLURM_STEP_NUM_TASKS");
  // srun --mpi=pmi2 sets PMI's variables to Slurm's numbers. In Hydra's ranks, whose proxy srun
  // started, Slurm's numbers are the proxy's.
  const bool numbers_of_step = in_step && look_up("PMI_RANK") == look_up("SLURM_PROCID") &&
                               look_up("PMI_SIZE") == look_up("SLURM_STEP_NUM_TASKS");
  if (has("PMI_RANK") && has("PMI_SIZE") && !numbers_of_step) return from_mpiexec(look_up);
  if (in_step) return from_srun(look_up);
  LauncherEnvironment none;
  const auto* unknown = std::ranges::find_if(unknown_ranks, has);
  if (unknown != unknown_ranks.end()) {
    none.unknown_rank = fmt::format("{}={}", *unknown, *look_up(*unknown));
  }
  return none;
}

}  // namespace

std::string to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "none";
    case Launcher::environment:
      return "RANK and WORLD_SIZE";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::mpiexec:
      return "mpiexec";
    case Launcher::srun:
      return "srun";
  }
  return "unknown";
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

LauncherEnvironment detect_launcher(const EnvironmentLookup& look_up) {
  LauncherEnvironment found = detected(look_up);
  require_order(found);
  return found;
}

std::vector<int> slurm_tasks_per_node(const std::string& text, int tasks) {
  std::vector<int> counts;
  int sum = 0;
  for (const std::string_view part : runtime::split(text, ',')) {
    const auto times = part.find("(x");
    const auto count = runtime::number_in<int>(part.substr(0, times));
    std::optional<int> nodes = 1;
    if (times != std::string_view::npos) {
      if (!part.ends_with(')')) return {};
      nodes = runtime::number_in<int>(part.substr(times + 2, part.size() - times - 3));
    }
    if (!count || *count < 1 || !nodes || *nodes < 1 || *nodes > (tasks - sum) / *count) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(*nodes), *count);
    sum += *nodes * *count;
  }
  return sum == tasks ? counts : std::vector<int>();
}

std::string first_slurm_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

std::uint16_t port_from(const std::string& text) {
  constexpr std::uint32_t lowest = 12000;
  constexpr std::uint32_t count = 20000;
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return static_cast<std::uint16_t>(lowest + hash % count);
}

}  // namespace stratagem::ranks
