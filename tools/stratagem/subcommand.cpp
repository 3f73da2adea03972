#include "tools/stratagem/subcommand.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "bench/launch/exit_codes.h"
#include "bench/machine/machine.h"
#include "models/registry/named_entries.h"
#include "reports/build_information.h"

namespace stratagem::tools {
namespace {

struct Summary {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<Summary, 13> summaries = {
    {{"list", "lists strategies, models, schedules, devices, benchmarks"},
     {"run", "measures one configuration or a grid of them"},
     {"train", "trains for epochs over a data set, by any strategy"},
     {"verify", "proves every strategy against one device, in float64"},
     {"simulate", "simulates a pipeline schedule without running it"},
     {"calibrate", "measures peak rates, memory and link bandwidth of the devices"},
     {"export", "writes what a row trains, for another program: initial state and batches"},
     {"prove", "compares what that program computed with one device"},
     {"doctor", "prints what was found on this machine, and the remedy for what is missing"},
     {"report", "draws charts and writes report.html from a results file"},
     {"compare", "decides whether one build or results file is slower than another"},
     {"history", "shows results over time, their trend and where it changed"},
     {"schema",
      "prints the JSON Schema of results.json, of a line of the history, or of trainings"}}};

int print_help() {
  fmt::print(
      "stratagem SUBCOMMAND [OPTION...]\n\n"
      "Measures how parallelism strategies train the same model on the same batch, and which one\n"
      "wins. Every strategy is first proven to compute the update of one device.\n\n");
  for (const Summary& summary : summaries) {
    fmt::print("  {:<10} {}\n", summary.name, summary.text);
  }
  fmt::print(
      "\n  --help, --version; `stratagem SUBCOMMAND --help` lists the options of one\n\n"
      "Exit codes: 0 done, 1 a mismatch or a regression, 2 bad usage or input, 3 nothing matched,\n"
      "4 a rank failed, hung or was lost, 5 cannot tell (compare --fail-on-ambiguous),\n"
      "130 interrupted.\n");
  return bench::exit_codes::done;
}

int print_version() {
  const reports::BuildInformation build = reports::build_information();
  fmt::print("stratagem {} ({}, {}), LibTorch {}\n", build.version, build.git_commit,
             build.build_type, bench::torch_version());
  return bench::exit_codes::done;
}

}  // namespace

int dispatch(const Arguments& arguments, const Performers& performers) {
  if (arguments.empty()) {
    throw std::invalid_argument("a subcommand is missing; `stratagem --help` lists them");
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") return print_help();
  if (name == "--version") return print_version();
  if (const auto found = performers.find(name); found != performers.end()) {
    return found->second({arguments.begin() + 1, arguments.end()});
  }
  std::vector<std::string> names;
  for (const Summary& summary : summaries) names.emplace_back(summary.name);
  throw std::invalid_argument(models::unknown_name("subcommand", name, names));
}

}  // namespace stratagem::tools
