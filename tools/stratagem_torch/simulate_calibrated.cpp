// stratagem simulate --calibrated: predicts the times of a row from its calibrated costs.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/placement.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/launch/launcher_session.h"
#include "bench/measure/environment.h"
#include "bench/measure/preparation.h"
#include "bench/measure/step_prediction.h"
#include "bench/predict/predict.h"
#include "bench/predict/sharding_choice.h"
#include "bench/worker/worker_main.h"
#include "reports/text_table.h"
#include "strategies/distributed/c10d_store.h"
#include "strategies/runtime/parse.h"
#include "strategies/runtime/print_line.h"
#include "strategies/schedules/simulate.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/simulation.h"

namespace stratagem::tools {
namespace {

/// Returns the one row that the options make.
bench::Config one_row(bench::Selection selection, const bench::LauncherSession& session,
                      const bench::Catalogue& catalogue) {
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "simulate"});
  session.fit(selection);
  std::vector<bench::Config> rows = bench::make_grid(selection, catalogue);
  session.fit(rows);
  if (rows.size() != 1) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated: these options make {} rows, but one is expected; give each option "
        "one value",
        rows.size()));
  }
  if (!bench::can_be_simulated(rows.front())) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated: {} on this mesh cannot be simulated; use a mesh without the "
        "dimensions context and tensor",
        rows.front().strategy));
  }
  return rows.front();
}

/// Returns the bytes of "800M" or "40G".
std::int64_t bytes_in(const std::string& text) {
  const bool is_gigabytes = text.ends_with('G');
  const std::string_view number =
      std::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1);
  const auto value = runtime::number_in<double>(number);
  constexpr double most = 1e9;  // of either unit, far beyond any device
  if ((is_gigabytes || text.ends_with('M')) && value && *value > 0 && *value < most) {
    return static_cast<std::int64_t>(*value * (is_gigabytes ? 1024 : 1) * mebibyte);
  }
  throw std::invalid_argument(fmt::format(
      "--memory-budget {}: expected MiB or GiB of a device's memory, as 800M or 40G", text));
}

std::string options_of(const bench::ShardingChoice& choice) {
  return fmt::format("--prefetch-groups {}{}", choice.prefetch,
                     choice.reshard_after_forward ? "" : " --no-reshard-after-forward");
}

void print_choice(const bench::Prediction& predicted, bool fits, const std::string& options) {
  const auto peak = static_cast<double>(predicted.peak_bytes.value_or(0));
  runtime::print_line(
      stderr, fmt::format("{:>9} ms  {:>8} MiB  {}  {}", reports::significant(predicted.step_ms, 4),
                          reports::significant(peak / mebibyte, 4),
                          fits ? "fits     " : "too large", options));
}

/// Returns the row with the fastest window and resharding that fit; prints the choices.
bench::Config sharded_within(std::int64_t budget, const bench::Config& config,
                             const bench::StageCosts& costs) {
  const auto choices = bench::sharding_choices(config, costs);
  const bench::ShardingChoice* fastest = nullptr;
  const bench::ShardingChoice* least = &choices.front();
  for (const bench::ShardingChoice& choice : choices) {
    const std::int64_t peak = choice.predicted.peak_bytes.value_or(0);
    const bool fits = peak <= budget;
    if (fits && fastest == nullptr) fastest = &choice;
    if (peak < least->predicted.peak_bytes.value_or(0)) least = &choice;
    print_choice(choice.predicted, fits, options_of(choice));
  }
  if (fastest != nullptr) return bench::with_choice(config, *fastest);
  throw std::invalid_argument(fmt::format(
      "--memory-budget: {} needs {:.5g} MiB at least, with {}", config.strategy,
      static_cast<double>(least->predicted.peak_bytes.value_or(0)) / mebibyte, options_of(*least)));
}

/// A row whose stages have costs.
struct PricedRow {
  bench::PreparedRow row;
  bench::StageCosts costs = {};
};

PricedRow priced(const bench::Config& config, const bench::MeasureEnvironment& environment,
                 bench::Progress& progress) {
  PricedRow found{.row = bench::check_rows({config}, environment, progress).front()};
  progress.phase("calibrating stages", 1);
  progress.begin(found.row.name, "");
  bench::Calibrator calibrator(environment);
  const auto [costs, basis] = bench::price_stages(found.row, environment, calibrator);
  bench::require_result("calibrating the stages", costs.status, costs.error);
  found.costs = costs.result;
  if (!basis.doubt.empty()) progress.note("costs are uncertain: " + basis.doubt);
  progress.end(std::nullopt);
  return found;
}

/// Returns the row with the least recomputation that fits; prints the choices. A kind that the row
/// cannot use is left out.
PricedRow recomputed_within(std::int64_t budget, bench::Config config,
                            const bench::MeasureEnvironment& environment,
                            bench::Progress& progress) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  using Kind = decltype(config.recompute);
  for (const Kind kind : {Kind("none"), Kind("selective"), Kind("full")}) {
    config.recompute = kind;
    std::optional<PricedRow> found;
    try {
      found = priced(config, environment, progress);
    } catch (const std::invalid_argument& refused) {
      if (config.recompute == "none") throw;
      progress.note(refused.what());
      continue;
    }
    const bench::Prediction predicted = bench::predict(found->row.config, found->costs);
    const std::int64_t peak = predicted.peak_bytes.value_or(0);
    print_choice(predicted, peak <= budget, fmt::format("--recompute {}", kind));
    if (peak <= budget) return *std::move(found);
    least = std::min(least, peak);
  }
  throw std::invalid_argument(fmt::format("--memory-budget: {} needs {:.5g} MiB at least",
                                          config.strategy, static_cast<double>(least) / mebibyte));
}

Simulation simulated(const bench::Config& config, const bench::Selection& selection,
                     const std::string& budget, const bench::Interrupt& interrupt,
                     bench::Cluster* cluster) {
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment = bench::make_environment(bench::registered_catalogue(), interrupt,
                                                   progress, false, bench::worker_main, cluster);
  const bool recomputes = !budget.empty() && bench::sharded_state(config) == "none";
  PricedRow found = recomputes ? recomputed_within(bytes_in(budget), config, environment, progress)
                               : priced(config, environment, progress);
  progress.finish();
  if (!budget.empty() && !recomputes) {
    found.row.config = sharded_within(bytes_in(budget), found.row.config, found.costs);
  }
  const bench::Config& chosen = found.row.config;
  Simulation simulation;
  simulation.title = bench::row_name(chosen, environment.catalogue);
  simulation.devices = found.row.placement.devices();
  if (found.row.placement.replicas() == 1) {
    const strategies::StepPlan plan = bench::plan_of(chosen);
    simulation.schedule = plan.of_stages;
    simulation.ideal_bubble = plan.ideal_bubble;
  }
  simulation.timeline = bench::predict_timeline(chosen, found.costs);
  simulation.peak_bytes = bench::predict(chosen, found.costs).peak_bytes;
  return simulation;
}

/// Refuses a budget that would choose nothing, or what is chosen already.
void require_use(const std::string& budget, const bench::Config& row,
                 const bench::Selection& selection) {
  bytes_in(budget);
  const bool shards = bench::sharded_state(row) != "none";
  const std::vector<const char*> chosen =
      shards ? std::vector{"prefetch_groups", "reshard_after_forward"} : std::vector{"recompute"};
  for (const char* option : chosen) {
    if (!selection.options.contains(option)) continue;
    throw std::invalid_argument(
        fmt::format("--memory-budget chooses {}; leave one of the two options out",
                    bench::find_option(option).flag));
  }
  if (!shards && bench::is_data_parallel(row)) {
    throw std::invalid_argument(
        fmt::format("--memory-budget: {} has no predicted memory; leave it out", row.strategy));
  }
}

}  // namespace

int simulate_calibrated(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app("Measures the costs of a row's stages and links and simulates its timeline.",
               "stratagem simulate --calibrated");
  bench::RunOptions typed;
  bench::LauncherOptions launcher;
  SimulationOutput output;
  bool calibrated = true;
  bench::add_run_options(app, typed, catalogue);
  bench::add_launcher_options(app, launcher);
  app.add_flag("--calibrated", calibrated, "measure the costs of a row")->group(bench::file_group);
  add_chart_option(app, output.chart);
  std::string budget;
  app.add_option(
         "--memory-budget", budget,
         "largest memory of a device, such as 800M or 40G; chooses the fastest prefetch and "
         "resharding of sharded state, or else the least recomputation, that fit")
      ->type_name("BYTES")
      ->group(bench::file_group);
  if (!parse(app, arguments)) return 0;
  output.out = typed.files.out;
  output.trace = typed.files.trace;

  const bench::Selection selection = bench::select(typed);
  const bench::LauncherSession session(launcher);
  const bench::Config row = one_row(selection, session, catalogue);
  if (!budget.empty()) require_use(budget, row, selection);
  const bench::RendezvousSettings settings{.open = distributed::connect_store,
                                           .timeout = row.timeout};
  std::optional<Simulation> simulation;  // only on the first rank
  const int code =
      session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
        check_places(output);
        simulation = simulated(row, selection, budget, interrupt, cluster);
        return bench::exit_codes::done;
      });
  // Comes after the session: another program may replace this one.
  return simulation ? finish(*simulation, output) : code;
}

}  // namespace stratagem::tools
