#include "bench/launch/launcher_session.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/config/grid.h"
#include "bench/launch/exit_codes.h"
#include "bench/machine/machine.h"
#include "strategies/runtime/print_line.h"

namespace stratagem::bench {

LauncherSession::LauncherSession(const LauncherOptions& options,
                                 const ranks::EnvironmentLookup& look_up)
    : launcher_(launcher_context(options, look_up)) {}

void LauncherSession::fit(Selection& selection) const {
  if (launcher_) apply_world_size(selection, *launcher_);
}

void LauncherSession::fit(std::int64_t& ranks, bool by_user) const {
  Selection selection;
  if (by_user) {
    selection.options["ranks"] = {{std::to_string(ranks)}, Origin::command_line, "--ranks"};
  }
  fit(selection);
  if (launcher_) ranks = launcher_->info.world_size;
}

void LauncherSession::fit(std::vector<Config>& rows) const {
  if (launcher_) fit_rows(rows, *launcher_);
}

std::int64_t LauncherSession::baseline_cores() const {
  return is_alone() ? static_cast<std::int64_t>(available_cores().size()) : any_baseline;
}

int LauncherSession::nothing_matched(const std::string& why) const {
  if (is_first()) runtime::print_line(stderr, why);
  return exit_codes::nothing_matched;
}

int LauncherSession::run(const RendezvousSettings& settings, const Body& body) const {
  const Interrupt interrupt;
  if (is_alone()) return body(interrupt, nullptr);
  const auto cluster = rendezvous(*launcher_, settings, interrupt);
  if (!is_first()) return cluster->follow();
  return cluster->lead([&] { return body(interrupt, cluster.get()); });
}

}  // namespace stratagem::bench
