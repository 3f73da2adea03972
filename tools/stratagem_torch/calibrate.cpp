// stratagem calibrate: measures the peak rates of the devices.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/core_demand.h"
#include "bench/config/grid.h"
#include "bench/config/run_options.h"
#include "bench/machine/core_lock.h"
#include "bench/measure/environment.h"
#include "bench/measure/job_launch.h"
#include "bench/measure/preparation.h"
#include "bench/worker/worker_main.h"
#include "reports/text_table.h"
#include "strategies/option.h"
#include "tools/stratagem/parse.h"

namespace stratagem::tools {
namespace {

/// Returns whether an option is about the devices and their arithmetic, whatever they train.
bool is_of_devices(const bench::Option& option) {
  using strategies::When;
  const bool by_device = option.used_when == When::always || option.used_when == When::on_cpu ||
                         option.used_when == When::on_cuda;
  return by_device && (option.group == "Devices" || option.group == "Numerics");
}

void print_rates(const bench::CalibrateDeviceResult& rates) {
  const auto line = [](double rate, const char* meaning, const char* unit) {
    fmt::print("{:<36} {:>10} {}\n", meaning, reports::significant(rate, 4), unit);
  };
  line(rates.gemm_gflops, "matrix product, each device", "GFLOP/s");
  line(rates.convolution_gflops, "convolution, each device", "GFLOP/s");
  line(rates.memory_gb_per_s, "memory bandwidth, each device", "GB/s");
  line(rates.link_gb_per_s, "link between devices", "GB/s");
  line(rates.link_latency_ms, "latency of a transfer", "ms");
}

}  // namespace

int calibrate(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app("Measures peak rates, memory bandwidth and link bandwidth of the devices.",
               "stratagem calibrate");
  bench::RunOptions typed;
  bool as_json = false;
  bench::add_row_options(app, typed, catalogue,
                         [](const bench::Option& option) { return !is_of_devices(option); });
  app.add_flag("--quiet", typed.files.quiet, "print no progress")->group(bench::file_group);
  app.add_flag("--json", as_json, "print a JSON object")->group(bench::file_group);
  if (!parse(app, arguments)) return 0;
  bench::Selection selection = bench::select(typed);
  // Chooses a strategy over all the job's devices: the link between them is measured too.
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "calibrate"});
  const std::vector<bench::Config> rows = bench::make_grid(selection, catalogue);
  if (rows.size() != 1) {
    throw std::invalid_argument(
        fmt::format("these options make {} rows, but one is expected; give each option one value",
                    rows.size()));
  }
  const bench::Config& config = rows.front();

  const bench::Interrupt interrupt;
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment =
      bench::make_environment(catalogue, interrupt, progress, false, bench::worker_main);
  bench::require_cores(config, environment.cores.size());
  const bench::CoreLocks locks = bench::hold_cores(bench::cores_of(config, environment.cores),
                                                   config.timeout, environment, progress);
  const auto launched =
      bench::launch_job(environment, bench::job_about<bench::CalibrateDeviceJob>(config));
  bench::require_result("calibrating", launched.status, launched.error);
  if (as_json) {
    fmt::print("{}\n", bench::to_json(bench::JobResult(launched.result)).dump(1));
  } else {
    print_rates(launched.result);
  }
  return 0;
}

}  // namespace stratagem::tools
