#include "bench/launch/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "bench/config/placement.h"
#include "bench/launch/exit_codes.h"
#include "bench/launch/store_with_deadline.h"
#include "bench/machine/machine.h"
#include "strategies/runtime/communication_error.h"
#include "strategies/runtime/parse.h"
#include "strategies/runtime/print_line.h"

namespace stratagem::bench {
namespace {

using ranks::LauncherEnvironment;
using ranks::StoreEndpoint;

constexpr std::string_view tcp_scheme = "tcp://";
constexpr std::string_view file_scheme = "file://";
constexpr std::string_view environment_scheme = "env://";

std::invalid_argument wrong_method(const std::string& text) {
  return std::invalid_argument(
      fmt::format("--init-method \"{}\": expected env://, tcp://HOST:PORT, tcp://[IPV6]:PORT or "
                  "file://PATH, with a PORT from 1 to 65535",
                  text));
}

void read_tcp(const std::string& method, StoreEndpoint& endpoint) {
  const std::string_view rest = std::string_view(method).substr(tcp_scheme.size());
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) throw wrong_method(method);
  endpoint.port = runtime::number_in<std::uint16_t>(rest.substr(colon + 1)).value_or(0);
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw wrong_method(method);
  }
  if (endpoint.port == 0 || host.empty()) throw wrong_method(method);
  endpoint.address = host;
}

std::optional<std::uint16_t> port_in(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto port = runtime::number_in<std::uint16_t>(*text);
  if (!port || *port == 0) {
    throw std::invalid_argument(
        fmt::format("MASTER_PORT={} is not a port; expected 1 to 65535", *text));
  }
  return port;
}

/// Returns the rank and the number of ranks, from the options or else from the launcher.
ranks::RankInfo info_from(const LauncherOptions& options, const LauncherEnvironment& found) {
  ranks::RankInfo info = found.info;
  const bool told = found.launcher != ranks::Launcher::none;
  if (!found.unknown_rank.empty() && (!options.rank || !options.world_size)) {
    throw std::invalid_argument(fmt::format(
        "{}: an MPI that Stratagem does not know started this process; give --init-method "
        "tcp://HOST:PORT, --rank and --world-size, for example with sh -c '... --rank ${}'",
        found.unknown_rank, found.unknown_rank.substr(0, found.unknown_rank.find('='))));
  }
  if (!told && (!options.rank || !options.world_size)) {
    const auto* given = options.rank         ? "--rank"
                        : options.world_size ? "--world-size"
                                             : "--init-method";
    const auto* missing = options.rank         ? "--world-size"
                          : options.world_size ? "--rank"
                                               : "--rank and --world-size";
    throw std::invalid_argument(
        fmt::format("{}: needs {} too, or a launcher that sets it", given, missing));
  }
  if (options.rank) info.rank = *options.rank;
  if (options.world_size) info.world_size = *options.world_size;
  if (info.rank >= info.world_size) {
    throw std::invalid_argument(fmt::format("--rank {}: expected 0 to {}, for {} ranks", info.rank,
                                            info.world_size - 1, info.world_size));
  }
  return info;
}

/// Reads MASTER_ADDR and MASTER_PORT, or the launcher's equivalents.
void read_environment(const LauncherEnvironment& found, const ranks::EnvironmentLookup& look_up,
                      LauncherContext& launched_by) {
  StoreEndpoint& endpoint = launched_by.store;
  const std::string address =
      found.master_address.empty() ? look_up("MASTER_ADDR").value_or("") : found.master_address;
  if (!address.empty()) {
    endpoint.address = address;
  } else if (found.info.local_world_size < found.info.world_size && found.info.world_size > 1) {
    throw std::invalid_argument(
        fmt::format("{}: the ranks are on several hosts but MASTER_ADDR is not set; set it and "
                    "MASTER_PORT (mpirun -x MASTER_ADDR=HOST, mpiexec -genv MASTER_ADDR HOST), or "
                    "give --init-method tcp://HOST:PORT",
                    launched_by.launcher));
  }
  const auto port = found.master_port ? found.master_port : port_in(look_up("MASTER_PORT"));
  if (!port) {
    throw std::invalid_argument(
        "--init-method: MASTER_PORT is not set in the environment; set it, or give "
        "tcp://HOST:PORT");
  }
  endpoint.port = *port;
  endpoint.serve = endpoint.serve && !found.launcher_serves_store;
}

}  // namespace

void add_launcher_options(CLI::App& app, LauncherOptions& options) {
  constexpr const char* group = "Ranks that you or a launcher start";
  app.add_option(
         "--init-method", options.init_method,
         "rendezvous address: env:// (MASTER_ADDR, MASTER_PORT), tcp://HOST:PORT, file://PATH")
      ->group(group);
  app.add_option("--rank", options.rank, "rank of this process [the launcher's]")
      ->check(CLI::Range(0, 1'000'000))
      ->option_text("N")
      ->group(group);
  app.add_option("--world-size", options.world_size, "number of ranks [the launcher's]")
      ->check(CLI::PositiveNumber)
      ->option_text("N")
      ->group(group);
}

std::optional<LauncherContext> launcher_context(const LauncherOptions& options,
                                                const ranks::EnvironmentLookup& look_up) {
  const LauncherEnvironment found = ranks::detect_launcher(look_up);
  const bool by_hand = !options.init_method.empty() || options.rank || options.world_size;
  const bool launched = found.launcher != ranks::Launcher::none || !found.unknown_rank.empty();
  if (!launched && !by_hand) return std::nullopt;
  LauncherContext launched_by;
  launched_by.launcher =
      found.launcher == ranks::Launcher::none ? "by hand" : to_string(found.launcher);
  launched_by.info = info_from(options, found);
  if (launched_by.info.world_size == 1) return std::nullopt;
  StoreEndpoint& endpoint = launched_by.store;
  endpoint.ranks = launched_by.info.world_size;
  endpoint.prefix = "stratagem/" + found.run_id;
  endpoint.serve = launched_by.info.rank == 0;
  const std::string& method = options.init_method;
  if (method.starts_with(tcp_scheme)) {
    read_tcp(method, endpoint);
  } else if (method.starts_with(file_scheme)) {
    endpoint.file = method.substr(file_scheme.size());
    if (endpoint.file.empty()) throw wrong_method(method);
    const std::filesystem::path folder = std::filesystem::absolute(endpoint.file).parent_path();
    if (!std::filesystem::is_directory(folder)) {
      throw std::invalid_argument(
          fmt::format("--init-method {}: the folder {} does not exist; choose a folder that all "
                      "ranks share",
                      method, folder.string()));
    }
  } else if (method.empty() || method == environment_scheme) {
    read_environment(found, look_up, launched_by);
  } else {
    throw wrong_method(method);
  }
  return launched_by;
}

void apply_world_size(Selection& selection, const LauncherContext& launcher_context) {
  const std::string world = std::to_string(launcher_context.info.world_size);
  const auto ranks = selection.options.find("ranks");
  if (ranks != selection.options.end() && ranks->second.texts != std::vector{world}) {
    throw std::invalid_argument(
        fmt::format("{}: {} ranks were started ({}); leave the option out, or give {}",
                    ranks->second.where, world, launcher_context.launcher, world));
  }
  const auto offer = [&](const char* option) {
    selection.options.try_emplace(option,
                                  Chosen{{world}, Origin::preset, launcher_context.launcher});
  };
  offer("ranks");
  if (!selection.options.contains("device_ids") && !selection.options.contains("mesh")) {
    offer("devices");
  }
}

void fit_rows(std::vector<Config>& rows, const LauncherContext& launcher_context) {
  const auto own_cores = static_cast<std::int64_t>(available_cores().size());
  const auto beyond = [&](const Config& row) {
    return row.strategy == "single" && row.device == "cpu" && !row.oversubscribe &&
           row.cores_per_device > own_cores;
  };
  if (!std::ranges::all_of(rows, beyond)) std::erase_if(rows, beyond);
  for (const Config& row : rows) {
    const int ranks = placement_of(row).ranks;
    if (ranks == 1 || ranks == launcher_context.info.world_size) continue;
    throw std::invalid_argument(fmt::format(
        "--ranks: {} on {} devices needs {} ranks, but {} were started ({})", row.strategy,
        row.devices, ranks, launcher_context.info.world_size, launcher_context.launcher));
  }
}

std::unique_ptr<Cluster> rendezvous(const LauncherContext& launcher_context,
                                    const RendezvousSettings& settings,
                                    const Interrupt& interrupt) {
  const std::chrono::duration<double> timeout(settings.timeout);
  ranks::StoreEndpoint endpoint = launcher_context.store;
  endpoint.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  ClusterOptions options;
  options.info = launcher_context.info;
  options.launcher = launcher_context.launcher;
  if (endpoint.file.empty()) options.master_address = endpoint.address;
  options.timeout = timeout;
  options.interrupt = &interrupt;
  options.verbose = settings.verbose;
  const auto give_up = [name = endpoint.name(), rank = options.info.rank, timeout] {
    runtime::print_line(
        stderr, fmt::format("stratagem: rank {}: the store at {} did not answer within {:g} s",
                            rank, name, timeout.count()));
    std::fflush(nullptr);
    ::_exit(exit_codes::lost);
  };
  const auto opened = [&] {
    try {
      return settings.open(endpoint);
    } catch (const runtime::CommunicationError& error) {
      throw runtime::CommunicationError(fmt::format("rank {} of {} ({}) on {}: {}",
                                                    options.info.rank, options.info.world_size,
                                                    options.launcher, host_name(), error.what()));
    }
  };
  return std::make_unique<Cluster>(std::make_unique<StoreWithDeadline>(opened, timeout, give_up),
                                   options);
}

}  // namespace stratagem::bench
