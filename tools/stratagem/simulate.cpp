// stratagem simulate: what a schedule would take, from given or calibrated costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "bench/config/grid.h"
#include "bench/config/options.h"
#include "bench/config/placement.h"
#include "bench/config/registered_catalogue.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/launch/launcher_session.h"
#include "bench/measure/environment.h"
#include "bench/measure/preparation.h"
#include "bench/measure/step_prediction.h"
#include "bench/predict/predict.h"
#include "bench/predict/sharding_choice.h"
#include "strategies/distributed/c10d_store.h"
#include "strategies/runtime/parse.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/simulate.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/simulation.h"

namespace stratagem::tools {
namespace {

struct GivenCosts {
  std::string schedule = "1f1b";
  int stages = 2;
  int micro_batches = 4;
  std::optional<int> virtual_stages = std::nullopt;  // as the schedule has, or 2
  std::string forward_ms = "1";
  std::string backward_ms = "2";
  double optimizer_ms = 0;
  double link_latency_ms = 0;
  double link_ms = 0;
};

double milliseconds_in(std::string_view text, const std::string& flag) {
  const auto value = runtime::number_in<double>(text);
  if (value && *value >= 0) return *value;
  throw std::invalid_argument(
      fmt::format("{}: \"{}\" is not a number of milliseconds; 0 or more, one a stage joined by +",
                  flag, text));
}

/// "1.5" for every stage, or "1+2" with one for each.
std::vector<double> per_stage(const std::string& text, int stages, const std::string& flag) {
  std::vector<double> values;
  for (const auto part : runtime::split(text, '+')) values.push_back(milliseconds_in(part, flag));
  if (values.size() == 1) values.resize(static_cast<std::size_t>(stages), values.front());
  if (values.size() != static_cast<std::size_t>(stages)) {
    throw std::invalid_argument(
        fmt::format("{}: {} values for {} stages; give one, or {} joined by +", flag, values.size(),
                    stages, stages));
  }
  return values;
}

void refuse_negative(double value, const std::string& flag) {
  if (value >= 0) return;
  throw std::invalid_argument(fmt::format("{}: {} is negative; 0 or more", flag, value));
}

Simulation simulate_given(const GivenCosts& given) {
  refuse_negative(given.optimizer_ms, "--optimizer-ms");
  refuse_negative(given.link_latency_ms, "--link-latency-ms");
  refuse_negative(given.link_ms, "--link-ms");
  Simulation simulation;
  const auto& entry = schedules::find_schedule(given.schedule);
  const int each = entry.stages_for(given.virtual_stages.value_or(2));
  if (given.virtual_stages && each != *given.virtual_stages) {
    throw std::invalid_argument(fmt::format("--virtual-stages: {} on every device of {}, not {}",
                                            each, given.schedule, *given.virtual_stages));
  }
  if (given.stages % std::max(each, 1) != 0) {
    throw std::invalid_argument(fmt::format(
        "--stages: {} cannot be {} on every device; a multiple of {}", given.stages, each, each));
  }
  simulation.devices = given.stages / std::max(each, 1);
  simulation.schedule =
      schedules::make_schedule(given.schedule, {.devices = simulation.devices,
                                                .micro_batches = given.micro_batches,
                                                .stages_per_device = each});
  schedules::UniformCosts costs;
  costs.forward_ms = per_stage(given.forward_ms, given.stages, "--forward-ms");
  costs.backward_ms = per_stage(given.backward_ms, given.stages, "--backward-ms");
  costs.optimizer_ms = given.optimizer_ms;
  costs.transfer_ms = given.link_latency_ms + given.link_ms;
  simulation.timeline = schedules::simulate(*simulation.schedule, schedules::cost_function(costs));
  simulation.title = fmt::format("{}: {} stages, {} micro-batches", given.schedule, given.stages,
                                 given.micro_batches);
  return simulation;
}

/// The one row that the options make.
bench::Config one_row(bench::Selection selection, const bench::LauncherSession& session,
                      const bench::Catalogue& catalogue) {
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "simulate"});
  session.fit(selection);
  std::vector<bench::Config> rows = bench::make_grid(selection, catalogue);
  session.fit(rows);
  if (rows.size() != 1) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated takes one row and these options make {}; give one value an option",
        rows.size()));
  }
  if (!bench::can_be_simulated(rows.front())) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated: no model of {} on this mesh: stages, or replicas of one stage "
        "(pipeline, model_parallel, ddp, data_parallel), and sharded state can be simulated",
        rows.front().strategy));
  }
  return rows.front();
}

/// "800M", "40G" as bytes.
std::int64_t bytes_in(const std::string& text) {
  const bool is_gigabytes = text.ends_with('G');
  const std::string_view number =
      std::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1);
  const auto value = runtime::number_in<double>(number);
  constexpr double most = 1e9;  // of either, far beyond any device
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

/// The row with the fastest window and resharding that fit; says what there was to choose from.
bench::Config within(std::int64_t budget, const bench::Config& config,
                     const bench::StageCosts& costs) {
  const auto choices = bench::sharding_choices(config, costs);
  const bench::ShardingChoice* fastest = nullptr;
  const bench::ShardingChoice* least = &choices.front();
  for (const bench::ShardingChoice& choice : choices) {
    const std::int64_t peak = choice.predicted.peak_bytes.value_or(0);
    const bool fits = peak <= budget;
    if (fits && fastest == nullptr) fastest = &choice;
    if (peak < least->predicted.peak_bytes.value_or(0)) least = &choice;
    fmt::print(stderr, "{:9.4g} ms  {:8.5g} MiB  {}  {}\n", choice.predicted.step_ms,
               static_cast<double>(peak) / mebibyte, fits ? "fits     " : "too large",
               options_of(choice));
  }
  if (fastest != nullptr) return bench::with_choice(config, *fastest);
  throw std::invalid_argument(fmt::format(
      "--memory-budget: {} needs {:.5g} MiB at least, with {}", config.strategy,
      static_cast<double>(least->predicted.peak_bytes.value_or(0)) / mebibyte, options_of(*least)));
}

Simulation simulate_calibrated(const bench::Config& config, const bench::Selection& selection,
                               const std::string& budget, const bench::Interrupt& interrupt,
                               bench::Cluster* cluster) {
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment =
      bench::make_environment(bench::registered_catalogue(), interrupt, progress, false, cluster);
  const bench::PreparedRow row = bench::check_rows({config}, environment, progress).front();
  progress.phase("calibrating stages", 1);
  progress.begin(row.name, "");
  bench::Calibrator calibrator(environment);
  const auto [priced, basis] = bench::price_stages(row, environment, calibrator);
  bench::require_result("calibrating the stages", priced.status, priced.error);
  if (!basis.doubt.empty()) progress.note("costs to be doubted: " + basis.doubt);
  progress.end(std::nullopt);
  progress.finish();
  const bench::Config chosen =
      budget.empty() ? row.config : within(bytes_in(budget), row.config, priced.result);
  Simulation simulation;
  simulation.title = bench::row_name(chosen, environment.catalogue);
  simulation.devices = row.placement.devices();
  if (row.placement.replicas() == 1) simulation.schedule = bench::schedule_of(chosen);
  simulation.timeline = bench::predict_timeline(chosen, priced.result);
  simulation.peak_bytes = bench::predict(chosen, priced.result).peak_bytes;
  return simulation;
}

void add_chart(CLI::App& app, std::string& chart) {
  app.add_option("--chart", chart, "Gantt chart, .png or .svg")->type_name("FILE");
}

int simulate_from_given(const Arguments& arguments) {
  CLI::App app("A pipeline schedule without running it", "stratagem simulate");
  GivenCosts given;
  SimulationOutput output;
  bool calibrated = false;
  const auto add = [&app](const char* flag, auto& target, const std::string& meaning) {
    app.add_option(flag, target, meaning)->type_name("");
  };
  add("--schedule", given.schedule,
      fmt::format("{} [1f1b]", fmt::join(schedules::schedule_names(), ", ")));
  add("--stages", given.stages, "stages of all devices together [2]");
  add("--virtual-stages", given.virtual_stages,
      "stages of each device, where the schedule leaves it open [2]");
  add("--micro-batches", given.micro_batches, "micro-batches of a step [4]");
  add("--forward-ms", given.forward_ms,
      "forward of a micro-batch; one value, or one a stage joined by + [1]");
  add("--backward-ms", given.backward_ms, "the same of the backward [2]");
  add("--optimizer-ms", given.optimizer_ms, "optimizer of a stage [0]");
  add("--link-latency-ms", given.link_latency_ms, "latency of a transfer [0]");
  add("--link-ms", given.link_ms, "time of a transfer on the link beyond that [0]");
  app.add_flag("--calibrated", calibrated,
               "measure the costs of a row instead; takes the options of `run` for it");
  app.add_option("--out", output.out, "the simulation as JSON, \"-\" for standard output")
      ->type_name("FILE");
  add_chart(app, output.chart);
  if (!parse(app, arguments)) return 0;
  check_places(output);
  return finish(simulate_given(given), output);
}

int simulate_from_calibration(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app("The timeline of a row, from the measured costs of its stages and links",
               "stratagem simulate --calibrated");
  bench::RunOptions typed;
  bench::LauncherOptions launcher;
  SimulationOutput output;
  bool calibrated = true;
  bench::add_run_options(app, typed, catalogue);
  bench::add_launcher_options(app, launcher);
  app.add_flag("--calibrated", calibrated, "this")->group("Files");
  add_chart(app, output.chart);
  std::string budget;
  app.add_option("--memory-budget", budget,
                 "the fastest window and resharding of sharded state with which no device holds "
                 "more; MiB or GiB, as 800M or 40G")
      ->type_name("BYTES")
      ->group("Files");
  if (!parse(app, arguments)) return 0;
  output.out = typed.files.out;

  const bench::Selection selection = bench::select(typed);
  const bench::LauncherSession session(launcher);
  const bench::Config row = one_row(selection, session, catalogue);
  if (!budget.empty()) {
    bytes_in(budget);
    for (const char* chosen : {"prefetch_groups", "reshard_after_forward"}) {
      if (!selection.options.contains(chosen)) continue;
      throw std::invalid_argument(
          fmt::format("--memory-budget chooses {} itself; leave one of them out",
                      bench::find_option(chosen).flag));
    }
    if (bench::sharded_state(row) == "none") {
      throw std::invalid_argument(fmt::format(
          "--memory-budget: {} shards no state over replicas; leave it out, or give zero1 to zero3",
          row.strategy));
    }
  }
  const bench::RendezvousSettings settings{.open = distributed::connect_store,
                                           .timeout = row.timeout};
  std::optional<Simulation> simulation;  // of the first rank
  const int code =
      session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
        check_places(output);
        simulation = simulate_calibrated(row, selection, budget, interrupt, cluster);
        return bench::exit_codes::done;
      });
  // After the session: another program may take this one's place.
  return simulation ? finish(*simulation, output) : code;
}

}  // namespace

int simulate(const Arguments& arguments) {
  const bool calibrated =
      std::find(arguments.begin(), arguments.end(), "--calibrated") != arguments.end();
  return calibrated ? simulate_from_calibration(arguments) : simulate_from_given(arguments);
}

}  // namespace stratagem::tools
