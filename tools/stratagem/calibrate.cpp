// stratagem calibrate: what the devices can do at best.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/core_lock.h"
#include "bench/environment.h"
#include "bench/grid.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/preparation.h"
#include "bench/registered_catalogue.h"
#include "bench/run_options.h"
#include "tools/stratagem/parse.h"

namespace stratagem::tools {
namespace {

void print_rates(const nlohmann::json& rates) {
  const auto line = [&](const char* key, const char* meaning, const char* unit) {
    if (rates.contains(key) && rates[key].is_number()) {
      fmt::print("{:<36} {:>10.4g} {}\n", meaning, rates[key].get<double>(), unit);
    }
  };
  line("gemm_gflops", "matrix product, each device", "GFLOP/s");
  line("convolution_gflops", "convolution, each device", "GFLOP/s");
  line("memory_gb_per_s", "memory bandwidth, each device", "GB/s");
  line("link_gb_per_s", "link between devices", "GB/s");
  line("link_latency_ms", "latency of a transfer", "ms");
}

}  // namespace

int calibrate(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app("Peak rates, memory and link bandwidth of the devices, measured now",
               "stratagem calibrate");
  bench::RunOptions typed;
  bool as_json = false;
  bench::add_run_options(app, typed, catalogue);
  app.add_flag("--json", as_json, "as a JSON object")->group("Files");
  if (!parse(app, arguments)) return 0;
  bench::Selection selection = bench::select(typed);
  // A strategy that spreads over all the job's devices: the link between them is measured too.
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "calibrate"});
  const bench::Config config = bench::make_grid(selection, catalogue).front();

  const bench::Interrupt interrupt;
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment = bench::make_environment(catalogue, interrupt, progress, false);
  bench::require_cores(config, environment.cores.size());
  const bench::CoreLocks locks(bench::cores_of(config, environment.cores),
                               {.timeout = std::chrono::duration<double>(config.timeout),
                                .folder = {},
                                .interrupt = &interrupt,
                                .say = [&](const std::string& line) { progress.note(line); }});
  const bench::LaunchResult launched =
      environment.launch({{"task", "calibrate_device"}, {"config", bench::to_json(config)}},
                         bench::launch_limit(config));
  bench::require_result("calibrating", launched);
  if (as_json) {
    fmt::print("{}\n", launched.result.dump(1));
  } else {
    print_rates(launched.result);
  }
  return 0;
}

}  // namespace stratagem::tools
