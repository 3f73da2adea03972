// stratagem_torch: the calls of `stratagem` that need models, strategies or plug-ins.
#include "bench/worker/worker_main.h"
#include "tools/stratagem/subcommand.h"

namespace stratagem::tools {
namespace {

int simulate_either(const Arguments& arguments) {
  return is_calibrated(arguments) ? simulate_calibrated(arguments) : simulate(arguments);
}

const Performers performers = {{"list", list},
                               {"run", run},
                               {"train", train},
                               {"verify", verify},
                               {"doctor", doctor},
                               {"calibrate", calibrate},
                               {"export", export_workload},
                               {"prove", prove},
                               {"report", report},
                               {"simulate", simulate_either},
                               {"compare", compare},
                               {"history", history},
                               {"schema", schema}};

}  // namespace
}  // namespace stratagem::tools

int main(int argc, char** argv) {
  using namespace stratagem;
  return bench::program_main(argc, argv, "stratagem", [](const tools::Arguments& arguments) {
    return tools::dispatch(arguments, tools::performers);
  });
}
