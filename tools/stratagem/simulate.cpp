// stratagem simulate: predicts the times of a schedule from given costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "models/registry/named_entries.h"
#include "reports/file_reader.h"
#include "strategies/runtime/parse.h"
#include "strategies/runtime/require_memory.h"
#include "strategies/schedules/registry.h"
#include "strategies/schedules/schedule_file.h"
#include "strategies/schedules/simulate.h"
#include "tools/stratagem/parse.h"
#include "tools/stratagem/simulation.h"

namespace stratagem::tools {
namespace {

struct GivenCosts {
  std::string schedule = "1f1b";
  std::string schedule_file = {};
  int stages = 2;
  int micro_batches = 4;
  std::optional<int> virtual_stages = std::nullopt;      // default: the schedule's, or 2
  std::optional<int> live_micro_batches = std::nullopt;  // default: 0
  std::string forward_ms = "1";
  std::string backward_ms = "2";
  double optimizer_ms = 0;
  double link_latency_ms = 0;
  double link_ms = 0;
};

constexpr double most_milliseconds = 1e12;

double milliseconds_in(std::string_view text, const std::string& flag) {
  const auto value = runtime::number_in<double>(text);
  if (value && *value >= 0 && *value <= most_milliseconds) return *value;
  throw std::invalid_argument(fmt::format("{}: \"{}\" is not a time in ms; expected 0 to {:g}",
                                          flag, text, most_milliseconds));
}

/// Parses "1.5" for every stage, or "1+2" with one for each.
std::vector<double> per_stage(const std::string& text, int stages, const std::string& flag) {
  std::vector<double> values;
  for (const auto part : runtime::split(text, '+')) values.push_back(milliseconds_in(part, flag));
  if (values.size() == 1) values.resize(static_cast<std::size_t>(stages), values.front());
  if (values.size() != static_cast<std::size_t>(stages)) {
    throw std::invalid_argument(
        fmt::format("{}: {} values for {} stages; give one value, or one for each stage", flag,
                    values.size(), stages));
  }
  return values;
}

void require_milliseconds(double value, const std::string& flag) {
  if (value >= 0 && value <= most_milliseconds) return;
  throw std::invalid_argument(
      fmt::format("{}: {} is out of range; expected 0 to {:g}", flag, value, most_milliseconds));
}

void require_memory_of_schedule(const GivenCosts& given) {
  constexpr double bytes_of_a_pair = 512;  // a stage's actions for a micro-batch, and their events
  const double bytes = bytes_of_a_pair * given.stages * given.micro_batches;
  runtime::require_memory(
      bytes, fmt::format("--stages {}, --micro-batches {}", given.stages, given.micro_batches));
}

/// Refuses the limit of a search for a schedule that has one order.
void require_search(const GivenCosts& given, const schedules::ScheduleEntry& entry) {
  if (given.live_micro_batches && *given.live_micro_batches < 0) {
    throw std::invalid_argument(fmt::format(
        "--live-micro-batches: {} is out of range; expected 0 or more", *given.live_micro_batches));
  }
  if (entry.is_searched || !given.live_micro_batches) return;
  std::vector<std::string> searched = schedules::schedule_names();
  std::erase_if(searched, [](const std::string& name) {
    return !schedules::find_schedule(name).is_searched;
  });
  throw std::invalid_argument(
      fmt::format("--live-micro-batches: has no effect on {}; it applies to --schedule {}",
                  given.schedule, fmt::join(searched, ", ")));
}

/// Returns the times for which a schedule is searched: the means over the stages.
schedules::PassTimes mean_pass_times(const schedules::UniformCosts& costs) {
  const auto mean = [](const std::vector<double>& ms) {
    return std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
  };
  const double half = mean(costs.backward_ms) / 2;
  return {mean(costs.forward_ms), half, half, costs.transfer_ms};
}

void require_count(int count, const char* flag) {
  if (count >= 1) return;
  throw std::invalid_argument(fmt::format("{} {}: expected 1 or more", flag, count));
}

const schedules::ScheduleEntry& schedule_of(const GivenCosts& given) {
  const std::vector<std::string> names = schedules::schedule_names();
  if (std::ranges::find(names, given.schedule) == names.end()) {
    throw std::invalid_argument("--schedule: " +
                                models::unknown_name("schedule", given.schedule, names));
  }
  return schedules::find_schedule(given.schedule);
}

Simulation simulate_given(const GivenCosts& given) {
  require_count(given.stages, "--stages");
  require_count(given.micro_batches, "--micro-batches");
  require_milliseconds(given.optimizer_ms, "--optimizer-ms");
  require_milliseconds(given.link_latency_ms, "--link-latency-ms");
  require_milliseconds(given.link_ms, "--link-ms");
  require_memory_of_schedule(given);
  Simulation simulation;
  const schedules::ScheduleEntry& entry = schedule_of(given);
  const int each = entry.stages_for(given.virtual_stages.value_or(2));
  if (given.virtual_stages && each != *given.virtual_stages) {
    throw std::invalid_argument(
        fmt::format("--virtual-stages {}: {} always has {} on each device; leave the option out",
                    *given.virtual_stages, given.schedule, each));
  }
  if (given.stages % std::max(each, 1) != 0) {
    throw std::invalid_argument(
        fmt::format("--stages {}: {} has {} stages on each device; give a multiple of {}",
                    given.stages, given.schedule, each, each));
  }
  simulation.devices = given.stages / std::max(each, 1);
  require_search(given, entry);
  schedules::UniformCosts costs;
  costs.forward_ms = per_stage(given.forward_ms, given.stages, "--forward-ms");
  costs.backward_ms = per_stage(given.backward_ms, given.stages, "--backward-ms");
  costs.optimizer_ms = given.optimizer_ms;
  costs.transfer_ms = given.link_latency_ms + given.link_ms;
  const schedules::ScheduleSize size{.devices = simulation.devices,
                                     .micro_batches = given.micro_batches,
                                     .stages_per_device = each,
                                     .pass_times = mean_pass_times(costs),
                                     .live_limit = given.live_micro_batches.value_or(0)};
  simulation.schedule = schedules::make_schedule(given.schedule, size);
  simulation.ideal_bubble = entry.ideal_bubble(size);
  simulation.timeline = schedules::simulate(*simulation.schedule, schedules::cost_function(costs));
  simulation.title = fmt::format("{}: {} stages, {} micro-batches", given.schedule, given.stages,
                                 given.micro_batches);
  return simulation;
}

void add_options(CLI::App& app, GivenCosts& given) {
  const auto add = [&app](const char* flag, const char* value, auto& target,
                          const std::string& meaning) {
    app.add_option(flag, target, meaning)->type_name(value);
  };
  add("--schedule", "NAME", given.schedule,
      fmt::format("pipeline schedule, or csv:FILE with an order of its passes: {} [1f1b]",
                  fmt::join(schedules::schedule_names(), ", ")));
  add("--schedule-file", "FILE", given.schedule_file,
      "same as --schedule csv:FILE; an invalid order is drawn");
  add("--stages", "N", given.stages, "number of stages of all devices together [2, or the file's]");
  add("--virtual-stages", "N", given.virtual_stages,
      "number of stages of each device, for a schedule that asks for it [2]");
  add("--live-micro-batches", "N", given.live_micro_batches,
      "largest number of micro-batches whose activations a device holds, for a searched schedule; "
      "0: twice the number of devices [0]");
  add("--micro-batches", "N", given.micro_batches, "number of micro-batches [4, or the file's]");
  add("--forward-ms", "X+X", given.forward_ms,
      "time of a forward pass: one value for all stages, or values joined by + [1]");
  add("--backward-ms", "X+X", given.backward_ms,
      "time of a backward pass: one value for all stages, or values joined by + [2]");
  add("--optimizer-ms", "X", given.optimizer_ms, "time of a stage's optimizer [0]");
  add("--link-latency-ms", "X", given.link_latency_ms, "latency of a transfer [0]");
  add("--link-ms", "X", given.link_ms, "time of a transfer without the latency [0]");
}

/// Registers the schedule of a file, whose stages and micro-batches are the defaults. Prints a
/// picture of an order that is not valid, unless `is_quiet`, and throws std::invalid_argument.
void load_order(GivenCosts& given, const CLI::App& app, bool is_quiet) {
  const std::string& name = given.schedule;
  const std::string file = name.substr(schedules::order_prefix.size());
  const std::string text = reports::read_file(file, "a schedule, one line for each device");
  const schedules::Schedule order = schedules::read_order(name, text);
  const schedules::OrderFaults faults = schedules::faults_of(order);
  if (!faults.is_valid() && !is_quiet) {
    fmt::print("{}", schedules::order_picture(order, faults, output_width()));
  }
  // A program with plug-ins has registered it already.
  const auto names = schedules::schedule_names();
  if (std::ranges::find(names, name) == names.end()) {
    schedules::ScheduleEntry::registry().add(schedules::read_schedule(name, text));
  }
  if (app.count("--stages") == 0) given.stages = order.stages();
  if (app.count("--micro-batches") == 0) given.micro_batches = order.micro_batches;
}

}  // namespace

int simulate(const Arguments& arguments) {
  CLI::App app("Simulates a pipeline schedule from given or measured costs.", "stratagem simulate");
  GivenCosts given;
  SimulationOutput output;
  bool calibrated = false;
  add_options(app, given);
  app.add_flag("--calibrated", calibrated,
               "measure the costs of a row; see `stratagem simulate --calibrated --help`");
  app.add_option("--out", output.out,
                 "write the simulation to FILE as JSON; \"-\" is the standard output")
      ->type_name("FILE");
  app.add_option("--trace", output.trace, "write the timeline to FILE for ui.perfetto.dev")
      ->type_name("FILE");
  add_chart_option(app, output.chart);
  if (!parse(app, arguments)) return 0;
  check_places(output);
  if (!given.schedule_file.empty()) {
    if (app.count("--schedule") > 0) {
      throw std::invalid_argument("--schedule-file: --schedule is given, too; give one of them");
    }
    given.schedule = fmt::format("{}{}", schedules::order_prefix, given.schedule_file);
  }
  if (given.schedule.starts_with(schedules::order_prefix)) {
    load_order(given, app, output.out == "-");
  }
  return finish(simulate_given(given), output);
}

}  // namespace stratagem::tools
