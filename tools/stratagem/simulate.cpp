// stratagem simulate: what a schedule would take, from given or calibrated costs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/environment.h"
#include "bench/grid.h"
#include "bench/options.h"
#include "bench/predict.h"
#include "bench/preparation.h"
#include "bench/registered_catalogue.h"
#include "bench/run_options.h"
#include "reports/atomic_file.h"
#include "reports/json_writer.h"
#include "reports/record_json.h"
#include "strategies/pipeline/schedule_registry.h"
#include "strategies/pipeline/simulate.h"
#include "tools/stratagem/gantt_text.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/python.h"

namespace stratagem::tools {
namespace {

struct Simulation {
  std::string title;
  pipeline::Schedule schedule;
  runtime::Timeline timeline;
};

struct Output {
  std::string out;
  std::string chart;
};

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
  simulation.schedule =
      pipeline::make_schedule(given.schedule, {.devices = given.stages / std::max(each, 1),
                                               .micro_batches = given.micro_batches,
                                               .stages_per_device = each});
  pipeline::UniformCosts costs;
  costs.forward_ms = per_stage(given.forward_ms, given.stages, "--forward-ms");
  costs.backward_ms = per_stage(given.backward_ms, given.stages, "--backward-ms");
  costs.optimizer_ms = given.optimizer_ms;
  costs.transfer_ms = given.link_latency_ms + given.link_ms;
  simulation.timeline = pipeline::simulate(simulation.schedule, pipeline::cost_function(costs));
  simulation.title = fmt::format("{}: {} stages, {} micro-batches", given.schedule, given.stages,
                                 given.micro_batches);
  return simulation;
}

Simulation simulate_calibrated(const bench::RunOptions& typed, const bench::Catalogue& catalogue) {
  bench::Selection selection = bench::select(typed);
  selection.options.try_emplace("strategy",
                                bench::Chosen{{"pipeline"}, bench::Origin::preset, "simulate"});
  const std::vector<bench::Config> configs = bench::make_grid(selection, catalogue);
  if (configs.size() != 1) {
    throw std::invalid_argument(fmt::format(
        "simulate --calibrated takes one row and these options make {}; give one value an option",
        configs.size()));
  }
  const bench::Interrupt interrupt;
  bench::Progress progress(bench::Progress::style(selection.files.quiet));
  const auto environment = bench::make_environment(catalogue, interrupt, progress, false);
  bench::PreparedRow row = bench::check_rows(configs, environment, progress).front();
  progress.phase("calibrating stages", 1);
  progress.begin(row.name, "");
  const bench::LaunchResult launched =
      environment.launch({{"task", "calibrate_stages"}, {"config", bench::to_json(row.config)}},
                         bench::launch_limit(row.config));
  bench::require_result("calibrating the stages", launched);
  Simulation simulation;
  simulation.schedule = bench::schedule_of(row.config);
  simulation.timeline =
      bench::predict_step(row.config, bench::costs_from_json(launched.result.at("costs")));
  simulation.title = row.name;
  return simulation;
}

nlohmann::ordered_json document_of(const Simulation& simulation) {
  std::vector<reports::TimelineEvent> events;
  for (const runtime::TimelineEntry& entry : simulation.timeline.entries) {
    events.push_back({.device = entry.device,
                      .kind = std::string(pipeline::name(entry.action.kind)),
                      .stage = entry.action.stage,
                      .micro_batch = entry.action.micro_batch,
                      .start_ms = entry.start_ms,
                      .end_ms = entry.end_ms});
  }
  const double bubble = pipeline::idle_fraction(simulation.timeline, simulation.schedule.devices());
  nlohmann::ordered_json body;
  body["title"] = simulation.title;
  body["makespan_ms"] = simulation.timeline.step_ms;
  body["bubble"] = bubble;
  body["timeline"] = reports::to_json(events);
  return {{"schema", reports::results_schema}, {"simulation", body}};
}

int terminal_width() {
  constexpr int of_a_file = 100;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return of_a_file;
}

void print(const Simulation& simulation) {
  const pipeline::Schedule& schedule = simulation.schedule;
  const auto& entry = pipeline::find_schedule(schedule.name);
  fmt::print("{}\n", simulation.title);
  fmt::print("makespan  {:.6g} ms\n", simulation.timeline.step_ms);
  fmt::print(
      "bubble    {:.1f}% of the devices' time; ideal {:.1f}%\n",
      100 * pipeline::idle_fraction(simulation.timeline, schedule.devices()),
      100 * entry.ideal_bubble({.devices = schedule.devices(),
                                .micro_batches = schedule.micro_batches,
                                .stages_per_device = schedule.stages() / schedule.devices()}));
  fmt::print("peak live micro-batches by device  {}\n\n",
             fmt::join(pipeline::peak_live_micro_batches(schedule), " "));
  fmt::print("{}", gantt_text(simulation.timeline, schedule.devices(), terminal_width()));
}

void require_chart_name(const std::string& chart) {
  if (chart.empty() || chart.ends_with(".png") || chart.ends_with(".svg")) return;
  throw std::invalid_argument(fmt::format("--chart: \"{}\" must end in .png or .svg", chart));
}

/// Hands the simulation to Python through a file in memory; does not return.
[[noreturn]] void draw(const nlohmann::ordered_json& document, const std::string& chart) {
  const std::string text = document.dump();
  const int fd = ::memfd_create("simulation", 0);  // inherited on purpose
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("no memory for the chart's data");
  }
  become_python("gantt", {fmt::format("/proc/self/fd/{}", fd), "--out", chart});
}

int finish(const Simulation& simulation, const Output& output) {
  const nlohmann::ordered_json document = document_of(simulation);
  if (output.out != "-") print(simulation);
  if (!output.out.empty()) reports::write_file_atomically(output.out, document.dump(1) + "\n");
  if (!output.chart.empty()) draw(document, output.chart);
  return 0;
}

void add_chart(CLI::App& app, std::string& chart) {
  app.add_option("--chart", chart, "Gantt chart, .png or .svg")->type_name("FILE");
}

void check_places(const Output& output) {
  require_chart_name(output.chart);
  if (!output.out.empty()) reports::check_writable(output.out);
}

int simulate_from_given(const Arguments& arguments) {
  CLI::App app("A pipeline schedule without running it", "stratagem simulate");
  GivenCosts given;
  Output output;
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
  CLI::App app("The schedule of a row, from the measured costs of its stages",
               "stratagem simulate --calibrated");
  bench::RunOptions typed;
  Output output;
  bool calibrated = true;
  bench::add_run_options(app, typed, catalogue);
  app.add_flag("--calibrated", calibrated, "this")->group("Files");
  add_chart(app, output.chart);
  if (!parse(app, arguments)) return 0;
  output.out = typed.files.out;
  check_places(output);
  return finish(simulate_calibrated(typed, catalogue), output);
}

}  // namespace

int simulate(const Arguments& arguments) {
  const bool calibrated =
      std::find(arguments.begin(), arguments.end(), "--calibrated") != arguments.end();
  return calibrated ? simulate_from_calibration(arguments) : simulate_from_given(arguments);
}

}  // namespace stratagem::tools
