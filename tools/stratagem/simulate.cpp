// stratagem simulate: what a schedule would take, from given or calibrated costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <stdexcept>

#include "bench/environment.h"
#include "bench/grid.h"
#include "bench/join.h"
#include "bench/placement.h"
#include "bench/predict.h"
#include "bench/preparation.h"
#include "bench/registered_catalogue.h"
#include "bench/run_options.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/simulate.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/simulation.h"

namespace stratagem::tools {
namespace {

struct GivenCosts {
  std::string schedule = "1f1b";
  int stages = 2;
  int micro_batches = 4;
  int virtual_stages = 2;
  std::string forward_ms = "1";
  std::string backward_ms = "2";
  double optimizer_ms = 0;
  double link_latency_ms = 0;
  double link_ms = 0;
};

double number(const std::string& text, const std::string& flag) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::invalid_argument(fmt::format(
        "{}: \"{}\" is not a number of milliseconds; 0 or more, one a stage joined by +", flag,
        text));
  }
  return value;
}

/// "1.5" for every stage, or "1+2" with one for each.
std::vector<double> per_stage(const std::string& text, int stages, const std::string& flag) {
  std::vector<double> values;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('+', start), text.size());
    values.push_back(number(text.substr(start, end - start), flag));
    start = end + 1;
  }
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
  const bool interleaved = pipeline::find_schedule(given.schedule).interleaved;
  const int each = interleaved ? given.virtual_stages : 1;
  if (given.stages % std::max(each, 1) != 0) {
    throw std::invalid_argument(fmt::format(
        "--stages: {} cannot be {} on every device; a multiple of {}", given.stages, each, each));
  }
  simulation.devices = given.stages / std::max(each, 1);
  simulation.schedule =
      pipeline::make_schedule(given.schedule, {.devices = simulation.devices,
                                               .micro_batches = given.micro_batches,
                                               .stages_per_device = each});
  pipeline::UniformCosts costs;
  costs.forward_ms = per_stage(given.forward_ms, given.stages, "--forward-ms");
  costs.backward_ms = per_stage(given.backward_ms, given.stages, "--backward-ms");
  costs.optimizer_ms = given.optimizer_ms;
  costs.transfer_ms = given.link_latency_ms + given.link_ms;
  simulation.timeline = pipeline::simulate(*simulation.schedule, pipeline::cost_function(costs));
  simulation.title = fmt::format("{}: {} stages, {} micro-batches", given.schedule, given.stages,
                                 given.micro_batches);
  return simulation;
}

/// The one row that the options make.
bench::Config one_row(bench::Selection selection, const std::optional<bench::Invitation>& invited,
                      const bench::Catalogue& catalogue) {
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "simulate"});
  if (invited) bench::fit_to_world(selection, *invited);
  std::vector<bench::Config> rows = bench::make_grid(selection, catalogue);
  if (invited) bench::fit_rows(rows, *invited);
  if (rows.size() != 1) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated takes one row and these options make {}; give one value an option",
        rows.size()));
  }
  if (!bench::can_be_simulated(rows.front())) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated: no model of {} on this mesh: stages, or replicas of one stage "
        "(pipeline, model_parallel, ddp), can be simulated",
        rows.front().strategy));
  }
  return rows.front();
}

Simulation simulate_calibrated(const bench::Config& config, const bench::Selection& selection,
                               const bench::Interrupt& interrupt, bench::Cluster* cluster) {
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment =
      bench::make_environment(bench::registered_catalogue(), interrupt, progress, false, cluster);
  bench::PreparedRow row = bench::check_rows({config}, environment, progress).front();
  progress.phase("calibrating stages", 1);
  progress.begin(row.name, "");
  bench::require_result("calibrating the stages", bench::price_stages(row, environment));
  progress.end(std::nullopt);
  progress.finish();
  Simulation simulation;
  simulation.title = row.name;
  simulation.devices = bench::placement_of(row.config).devices();
  if (bench::placement_of(row.config).replicas() == 1) {
    simulation.schedule = bench::schedule_of(row.config);
  }
  simulation.timeline = bench::predict_timeline(row.config, row.stage_costs);
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
  app.add_option("--schedule", given.schedule,
                 fmt::format("{} [1f1b]", fmt::join(pipeline::schedule_names(), ", ")))
      ->type_name("");
  app.add_option("--stages", given.stages, "stages, one a device unless interleaved [2]")
      ->type_name("");
  app.add_option("--virtual-stages", given.virtual_stages,
                 "stages of each device, of an interleaved schedule [2]")
      ->type_name("");
  app.add_option("--micro-batches", given.micro_batches, "micro-batches of a step [4]")
      ->type_name("");
  app.add_option("--forward-ms", given.forward_ms,
                 "forward of a micro-batch; one value, or one a stage joined by + [1]")
      ->type_name("");
  app.add_option("--backward-ms", given.backward_ms, "the same of the backward [2]")->type_name("");
  app.add_option("--optimizer-ms", given.optimizer_ms, "optimizer of a stage [0]")->type_name("");
  app.add_option("--link-latency-ms", given.link_latency_ms, "latency of a transfer [0]")
      ->type_name("");
  app.add_option("--link-ms", given.link_ms, "time of a transfer on the link beyond that [0]")
      ->type_name("");
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
  bench::JoinOptions joining;
  SimulationOutput output;
  bool calibrated = true;
  bench::add_run_options(app, typed, catalogue);
  bench::add_join_options(app, joining);
  app.add_flag("--calibrated", calibrated, "this")->group("Files");
  add_chart(app, output.chart);
  if (!parse(app, arguments)) return 0;
  output.out = typed.files.out;

  const bench::Selection selection = bench::select(typed);
  const auto invited = bench::invitation(joining, runtime::process_environment);
  const bench::Config row = one_row(selection, invited, catalogue);
  const bench::Interrupt interrupt;
  std::unique_ptr<bench::Cluster> cluster;
  if (invited) {
    cluster = bench::join(*invited, bench::timeout_of(selection), interrupt, false,
                          runtime::open_meeting);
    if (invited->place.rank > 0) return cluster->follow();
  }
  Simulation simulation;
  const auto body = [&] {
    check_places(output);
    simulation = simulate_calibrated(row, selection, interrupt, cluster.get());
    return 0;
  };
  if (cluster) {
    cluster->lead(body);
  } else {
    body();
  }
  cluster.reset();  // before another program takes this one's place
  return finish(simulation, output);
}

}  // namespace

int simulate(const Arguments& arguments) {
  const bool calibrated =
      std::find(arguments.begin(), arguments.end(), "--calibrated") != arguments.end();
  return calibrated ? simulate_from_calibration(arguments) : simulate_from_given(arguments);
}

}  // namespace stratagem::tools
