#include "bench/join.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "bench/guarded_main.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/placement.h"
#include "bench/watched_meeting.h"
#include "strategies/runtime/communication_error.h"

namespace stratagem::bench {

namespace {

using runtime::LauncherEnvironment;
using runtime::MeetingPlace;

constexpr std::string_view tcp = "tcp://";
constexpr std::string_view file = "file://";
constexpr std::string_view environment = "env://";

std::invalid_argument wrong_method(const std::string& text) {
  return std::invalid_argument(
      fmt::format("--init-method \"{}\": expected env://, tcp://HOST:PORT or file://PATH", text));
}

void read_tcp(const std::string& method, MeetingPlace& place) {
  const std::string_view rest = std::string_view(method).substr(tcp.size());
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) throw wrong_method(method);
  const std::string_view port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), place.port);
  if (error != std::errc() || end != port.data() + port.size() || place.port == 0) {
    throw wrong_method(method);
  }
  place.address = rest.substr(0, colon);
}

std::optional<std::uint16_t> port_in(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size() || port == 0) {
    throw std::invalid_argument(fmt::format("MASTER_PORT={} is not a port", *text));
  }
  return port;
}

/// The rank and the number of ranks, from the options or else from the launcher.
runtime::RankPlace place_from(const JoinOptions& options, const LauncherEnvironment& found) {
  runtime::RankPlace place = found.place;
  const bool told = found.launcher != runtime::Launcher::none;
  if (!told && (!options.rank || !options.world_size)) {
    const auto* given = options.rank         ? "--rank"
                        : options.world_size ? "--world-size"
                                             : "--init-method";
    const auto* missing = options.rank         ? "--world-size"
                          : options.world_size ? "--rank"
                                               : "--rank and --world-size";
    throw std::invalid_argument(
        fmt::format("{}: needs {} too, or a launcher that says so", given, missing));
  }
  if (options.rank) place.rank = *options.rank;
  if (options.world_size) place.world_size = *options.world_size;
  if (place.rank >= place.world_size) {
    throw std::invalid_argument(fmt::format("--rank {}: of {} ranks the last is {}", place.rank,
                                            place.world_size, place.world_size - 1));
  }
  return place;
}

}  // namespace

void add_join_options(CLI::App& app, JoinOptions& options) {
  constexpr const char* group = "Ranks that are started by hand or by a launcher";
  app.add_option(
         "--init-method", options.init_method,
         "where ranks meet: env:// (MASTER_ADDR, MASTER_PORT), tcp://HOST:PORT, file://PATH")
      ->group(group);
  app.add_option("--rank", options.rank, "which rank this process is; default: the launcher's word")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--world-size", options.world_size, "how many ranks there are; default: the same")
      ->check(CLI::PositiveNumber)
      ->group(group);
}

std::optional<Invitation> invitation(const JoinOptions& options,
                                     const runtime::EnvironmentLookup& look_up) {
  const LauncherEnvironment found = runtime::detect_launcher(look_up);
  const bool by_hand = !options.init_method.empty() || options.rank || options.world_size;
  if (found.launcher == runtime::Launcher::none && !by_hand) return std::nullopt;
  Invitation invited;
  invited.launcher =
      found.launcher == runtime::Launcher::none ? "by hand" : to_string(found.launcher);
  invited.place = place_from(options, found);
  if (invited.place.world_size == 1) return std::nullopt;
  MeetingPlace& place = invited.meeting;
  place.ranks = invited.place.world_size;
  place.prefix = "stratagem/" + found.run_id;
  place.serve = invited.place.rank == 0;
  const std::string& method = options.init_method;
  if (method.starts_with(tcp)) {
    read_tcp(method, place);
  } else if (method.starts_with(file)) {
    place.file = method.substr(file.size());
    if (place.file.empty()) throw wrong_method(method);
  } else if (method.empty() || method == environment) {
    const auto address = look_up("MASTER_ADDR");
    const auto port = found.master_port ? found.master_port : port_in(look_up("MASTER_PORT"));
    if (!port) {
      throw std::invalid_argument(
          fmt::format("{}: MASTER_PORT is not set; set it, or give --init-method tcp://HOST:PORT",
                      invited.launcher));
    }
    place.port = *port;
    place.address =
        !found.master_address.empty() ? found.master_address : address.value_or("127.0.0.1");
    place.serve = place.serve && !found.launcher_serves_store;
  } else {
    throw wrong_method(method);
  }
  return invited;
}

void fit_to_world(Selection& selection, const Invitation& invitation) {
  const std::string world = std::to_string(invitation.place.world_size);
  const auto ranks = selection.options.find("ranks");
  if (ranks != selection.options.end() && ranks->second.texts != std::vector{world}) {
    throw std::invalid_argument(fmt::format("{}: {} started {} ranks; leave it out, or say {}",
                                            ranks->second.where, invitation.launcher, world,
                                            world));
  }
  const auto offer = [&](const char* option) {
    selection.options.try_emplace(option, Chosen{{world}, Origin::preset, invitation.launcher});
  };
  offer("ranks");
  if (!selection.options.contains("device_ids") && !selection.options.contains("mesh")) {
    offer("devices");
  }
}

void fit_rows(std::vector<Config>& rows, const Invitation& invitation) {
  const auto own_cores = static_cast<std::int64_t>(available_cores().size());
  const auto beyond = [&](const Config& row) {
    return row.strategy == "single" && row.device == "cpu" && !row.oversubscribe &&
           row.cores_per_device > own_cores;
  };
  if (!std::ranges::all_of(rows, beyond)) std::erase_if(rows, beyond);
  for (const Config& row : rows) {
    const int ranks = placement_of(row).ranks;
    if (ranks == 1 || ranks == invitation.place.world_size) continue;
    throw std::invalid_argument(
        fmt::format("--ranks: {} on {} devices needs {} ranks, and {} started {}", row.strategy,
                    row.devices, ranks, invitation.launcher, invitation.place.world_size));
  }
}

std::chrono::duration<double> timeout_of(const Selection& selection) {
  Config config;
  const auto chosen = selection.options.find("timeout");
  if (chosen != selection.options.end()) {
    set_value(config, find_option("timeout"), chosen->second.texts.front(), chosen->second.where,
              nullptr);
  }
  return std::chrono::duration<double>(config.timeout);
}

std::unique_ptr<Cluster> join(const Invitation& invitation, std::chrono::duration<double> timeout,
                              const Interrupt& interrupt, bool verbose, MeetingOpener open) {
  runtime::MeetingPlace place = invitation.meeting;
  place.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  ClusterOptions options;
  options.place = invitation.place;
  options.launcher = invitation.launcher;
  if (place.file.empty()) options.master_address = place.address;
  options.timeout = timeout;
  options.interrupt = &interrupt;
  options.verbose = verbose;
  const auto give_up = [name = place.name(), rank = options.place.rank, timeout] {
    fmt::print(stderr, "stratagem: rank {}: the meeting at {} did not answer within {:g} s\n", rank,
               name, timeout.count());
    std::fflush(nullptr);
    ::_exit(exit_codes::lost);
  };
  const auto opened = [&] {
    try {
      return open(place);
    } catch (const runtime::CommunicationError& error) {
      throw runtime::CommunicationError(fmt::format("rank {} of {} ({}) on {}: {}",
                                                    options.place.rank, options.place.world_size,
                                                    options.launcher, host_name(), error.what()));
    }
  };
  return std::make_unique<Cluster>(std::make_unique<WatchedMeeting>(opened, timeout, give_up),
                                   options);
}

}  // namespace stratagem::bench
