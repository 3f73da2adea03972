// stratagem: measures how parallelism strategies train the same model on the same batch.
#include <fmt/format.h>

#include <array>
#include <stdexcept>
#include <string>

#include "bench/launch/exit_codes.h"
#include "bench/machine/machine.h"
#include "bench/worker/worker_main.h"
#include "models/registry/named_entries.h"
#include "reports/build_information.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {
namespace {

const std::array<Subcommand, 11> subcommands = {
    {{"list", "strategies, models, schedules, devices, benchmarks", list},
     {"run", "measures one configuration or a grid of them", run},
     {"train", "epochs over a data set, by any strategy", train},
     {"verify", "proves every strategy against one device, in float64", verify},
     {"simulate", "a pipeline schedule without running it", simulate},
     {"calibrate", "peak rates, memory and link bandwidth of the devices", calibrate},
     {"doctor", "what was found on this machine, and the remedy for what is missing", doctor},
     {"report", "charts and report.html of a results file", report},
     {"compare", "whether one build or results file is slower than another", compare},
     {"history", "results over time, their trend and where it changed", history},
     {"schema", "the JSON Schema of results.json, of a line of the history, or of trainings",
      schema}}};

int print_help() {
  fmt::print(
      "stratagem SUBCOMMAND [OPTION...]\n\n"
      "Measures how parallelism strategies train the same model on the same batch, and says which\n"
      "one wins. Every strategy is first shown to compute the update that one device would.\n\n");
  for (const Subcommand& subcommand : subcommands) {
    fmt::print("  {:<10} {}\n", subcommand.name, subcommand.summary);
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

int dispatch(const std::string& name, const Arguments& arguments) {
  if (name == "--help" || name == "-h" || name == "help") return print_help();
  if (name == "--version") return print_version();
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.name == name) return subcommand.perform(arguments);
    names.push_back(subcommand.name);
  }
  throw std::invalid_argument(models::unknown_name("subcommand", name, names));
}

}  // namespace
}  // namespace stratagem::tools

int main(int argc, char** argv) {
  using namespace stratagem;
  return bench::program_main(argc, argv, "stratagem", [](const tools::Arguments& arguments) {
    if (arguments.empty()) {
      throw std::invalid_argument("a subcommand is missing; `stratagem --help` lists them");
    }
    return tools::dispatch(arguments.front(), {arguments.begin() + 1, arguments.end()});
  });
}
