#include "strategies/ranks/launcher_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "strategies/runtime/parse.h"

namespace stratagem::ranks {
namespace {

/// Reads one launcher's words.
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
    if (value > std::numeric_limits<std::uint16_t>::max()) throw wrong(name, *text, "a port");
    return static_cast<std::uint16_t>(value);
  }

 private:
  int parsed(const std::string& name, const std::string& text, int low) const {
    const auto value = runtime::number_in<int>(text);
    if (value && *value >= low) return *value;
    throw wrong(name, text, fmt::format("a whole number from {} on", low));
  }

  std::invalid_argument missing(const std::string& name) const {
    return std::invalid_argument(
        fmt::format("{}: {} is not set in the environment", to_string(launcher_), name));
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
  throw std::invalid_argument(fmt::format("{}: rank {} of {}, on its host {} of {}, cannot be",
                                          to_string(found.launcher), rank, world_size, local_rank,
                                          local_world_size));
}

/// torchrun, or RANK and WORLD_SIZE set by hand.
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
  if (found.master_address.empty() && found.info.local_world_size < found.info.world_size) {
    throw std::invalid_argument(
        "mpirun: the ranks lie on several hosts and MASTER_ADDR is not set; add "
        "-x MASTER_ADDR=HOST -x MASTER_PORT=PORT with the host of rank 0");
  }
  if (!found.master_port) found.master_port = port_from("mpirun " + found.run_id);
  return found;
}

LauncherEnvironment from_srun(const EnvironmentLookup& look_up) {
  const Reader read(look_up, Launcher::srun);
  LauncherEnvironment found;
  found.launcher = Launcher::srun;
  found.info.rank = read.number("SLURM_PROCID", 0);
  found.info.world_size = read.number("SLURM_STEP_NUM_TASKS", 1);
  found.info.local_rank = read.number("SLURM_LOCALID", 0);
  const int hosts = read.number_or("SLURM_STEP_NUM_NODES", 1, 1);
  // "2(x3)": Slurm's own words for the tasks of each node are only needed with several of them.
  found.info.local_world_size =
      hosts == 1 ? found.info.world_size
                 : read.number_or("SLURM_NTASKS_PER_NODE", 1, found.info.world_size / hosts);
  found.run_id = read.text_or("SLURM_JOB_ID", "0") + "." + read.text_or("SLURM_STEP_ID", "0");
  found.master_address = read.text_or("MASTER_ADDR", "");
  if (found.master_address.empty() && hosts > 1) {
    found.master_address = first_slurm_host(read.text_or("SLURM_STEP_NODELIST", ""));
  }
  found.master_port = read.port("MASTER_PORT");
  if (!found.master_port) found.master_port = port_from("srun " + found.run_id);
  return found;
}

LauncherEnvironment detected(const EnvironmentLookup& look_up) {
  const auto has = [&](const char* name) { return look_up(name).has_value(); };
  if (has("TORCHELASTIC_RUN_ID")) return from_torchrun(look_up, Launcher::torchrun);
  if (has("RANK") && has("WORLD_SIZE")) return from_torchrun(look_up, Launcher::environment);
  if (has("OMPI_COMM_WORLD_RANK")) return from_mpirun(look_up);
  // A batch script or salloc has SLURM_PROCID without a step: it is no rank.
  if (has("SLURM_STEP_ID") && has("SLURM_STEP_NUM_TASKS")) return from_srun(look_up);
  return {};
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

std::string first_slurm_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

std::uint16_t port_from(const std::string& text) {
  constexpr std::uint32_t lowest = 20000;
  constexpr std::uint32_t count = 40000;
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return static_cast<std::uint16_t>(lowest + hash % count);
}

}  // namespace stratagem::ranks
