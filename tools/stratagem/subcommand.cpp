#include "tools/stratagem/subcommand.h"

#include <fmt/format.h>

#include <algorithm>
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
    {{"list", "lists strategies, models, data sets, schedules, devices and benchmarks"},
     {"run", "measures a configuration or a grid of configurations"},
     {"train", "trains on a data set with any strategy"},
     {"verify", "verifies that strategies compute the update of one device"},
     {"simulate", "simulates a pipeline schedule from given or measured costs"},
     {"calibrate", "measures peak rates, memory bandwidth and link bandwidth"},
     {"export", "writes a row's initial state and batches for another program"},
     {"prove", "compares that program's training steps with one device"},
     {"doctor", "checks this machine and prints a remedy for each problem"},
     {"report", "writes charts and report.html from a results file"},
     {"compare", "tests whether a build or a results file is slower than another"},
     {"history", "shows results over time and detects changes"},
     {"schema", "prints the JSON Schema of results, history or training files"}}};

int print_help() {
  fmt::print(
      "Usage: stratagem SUBCOMMAND [OPTION...]\n\n"
      "Measures how fast parallelism strategies train the same model on the same batches.\n"
      "Each strategy is verified to compute the update of one device before it is timed.\n\n");
  for (const Summary& summary : summaries) {
    fmt::print("  {:<10} {}\n", summary.name, summary.text);
  }
  fmt::print(
      "\n"
      "  -h, --help                 print this page\n"
      "  -V, --version              print the version\n"
      "  stratagem SUBCOMMAND -h    list the options of a subcommand\n\n"
      "Exit codes:\n"
      "  0    success\n"
      "  1    a mismatch or a regression\n"
      "  2    wrong usage or input\n"
      "  3    no row matched\n"
      "  4    a rank failed, hung or was lost\n"
      "  5    the comparison is ambiguous (compare --fail-on-ambiguous)\n"
      "  130  interrupted\n");
  return bench::exit_codes::done;
}

int print_version() {
  const reports::BuildInformation build = reports::build_information();
  fmt::print("stratagem {} ({}, {}), LibTorch {}\n", build.version, build.git_commit,
             build.build_type, bench::torch_version());
  return bench::exit_codes::done;
}

}  // namespace

bool is_calibrated(const Arguments& arguments) {
  return std::ranges::any_of(arguments, [](const std::string& argument) {
    return argument == "--calibrated" || argument == "--calibrated=true";
  });
}

int dispatch(const Arguments& arguments, const Performers& performers) {
  if (arguments.empty()) {
    throw std::invalid_argument("a subcommand is missing; `stratagem --help` lists them");
  }
  const std::string& name = arguments.front();
  const bool asks_for_help = name == "--help" || name == "-h" || name == "help";
  if (asks_for_help && arguments.size() == 1) return print_help();
  if (name == "--version" || name == "-V") return print_version();
  if (name == "help") return dispatch({arguments[1], "--help"}, performers);
  if (const auto found = performers.find(name); found != performers.end()) {
    return found->second({arguments.begin() + 1, arguments.end()});
  }
  if (name.starts_with('-')) {
    throw std::invalid_argument(
        fmt::format("unknown option {}{}", name,
                    models::did_you_mean(name, {"--help", "--version"},
                                         "; options of a subcommand come after its name")));
  }
  std::vector<std::string> names;
  for (const Summary& summary : summaries) names.emplace_back(summary.name);
  throw std::invalid_argument(models::unknown_name("subcommand", name, names));
}

}  // namespace stratagem::tools
