// stratagem simulate: predicts the times of a schedule from given costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "strategies/runtime/parse.h"
#include "strategies/runtime/require_memory.h"
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
  throw std::invalid_argument(
      fmt::format("{}: \"{}\" is not a time in ms; 0 to {:g}, one for each stage joined by +", flag,
                  text, most_milliseconds));
}

/// Parses "1.5" for every stage, or "1+2" with one for each.
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

void require_milliseconds(double value, const std::string& flag) {
  if (value >= 0 && value <= most_milliseconds) return;
  throw std::invalid_argument(
      fmt::format("{}: {} is out of range; 0 to {:g}", flag, value, most_milliseconds));
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
    throw std::invalid_argument(fmt::format("--live-micro-batches: {} is out of range; 0 or more",
                                            *given.live_micro_batches));
  }
  if (entry.is_searched || !given.live_micro_batches) return;
  std::vector<std::string> searched = schedules::schedule_names();
  std::erase_if(searched, [](const std::string& name) {
    return !schedules::find_schedule(name).is_searched;
  });
  throw std::invalid_argument(
      fmt::format("--live-micro-batches: {} is not searched; use --schedule {}", given.schedule,
                  fmt::join(searched, ", ")));
}

/// Returns the times for which a schedule is searched: the means over the stages.
schedules::PassTimes mean_pass_times(const schedules::UniformCosts& costs) {
  const auto mean = [](const std::vector<double>& ms) {
    return std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
  };
  const double half = mean(costs.backward_ms) / 2;
  return {mean(costs.forward_ms), half, half, costs.transfer_ms};
}

Simulation simulate_given(const GivenCosts& given) {
  require_milliseconds(given.optimizer_ms, "--optimizer-ms");
  require_milliseconds(given.link_latency_ms, "--link-latency-ms");
  require_milliseconds(given.link_ms, "--link-ms");
  require_memory_of_schedule(given);
  Simulation simulation;
  const auto& entry = schedules::find_schedule(given.schedule);
  const int each = entry.stages_for(given.virtual_stages.value_or(2));
  if (given.virtual_stages && each != *given.virtual_stages) {
    throw std::invalid_argument(fmt::format("--virtual-stages {}: {} has {} on each device",
                                            *given.virtual_stages, given.schedule, each));
  }
  if (given.stages % std::max(each, 1) != 0) {
    throw std::invalid_argument(fmt::format(
        "--stages {}: {} has {} stages on each device (--virtual-stages); give a multiple of {}",
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

}  // namespace

int simulate(const Arguments& arguments) {
  CLI::App app("Simulates a pipeline schedule from given or measured costs.", "stratagem simulate");
  GivenCosts given;
  SimulationOutput output;
  bool calibrated = false;
  const auto add = [&app](const char* flag, const char* value, auto& target,
                          const std::string& meaning) {
    app.add_option(flag, target, meaning)->type_name(value);
  };
  add("--schedule", "NAME", given.schedule,
      fmt::format("pipeline schedule: {} [1f1b]", fmt::join(schedules::schedule_names(), ", ")));
  add("--stages", "N", given.stages, "number of stages [2]");
  add("--virtual-stages", "N", given.virtual_stages,
      "number of stages of each device, for schedules with several [2]");
  add("--live-micro-batches", "N", given.live_micro_batches,
      "number of micro-batches whose activations a device of a searched schedule may hold; 0: "
      "twice the devices [0]");
  add("--micro-batches", "N", given.micro_batches, "number of micro-batches [4]");
  add("--forward-ms", "X+X", given.forward_ms,
      "time of a forward pass; one value, or one for each stage joined by + [1]");
  add("--backward-ms", "X+X", given.backward_ms,
      "time of a backward pass; one value, or one for each stage joined by + [2]");
  add("--optimizer-ms", "X", given.optimizer_ms, "time of a stage's optimizer [0]");
  add("--link-latency-ms", "X", given.link_latency_ms, "latency of a transfer [0]");
  add("--link-ms", "X", given.link_ms, "time of a transfer in addition to the latency [0]");
  app.add_flag("--calibrated", calibrated,
               "measure the costs of a row; accepts the options of `run`");
  app.add_option("--out", output.out,
                 "write the simulation to FILE as JSON; \"-\" is the standard output")
      ->type_name("FILE");
  app.add_option("--trace", output.trace, "write the timeline to FILE for ui.perfetto.dev")
      ->type_name("FILE");
  add_chart_option(app, output.chart);
  if (!parse(app, arguments)) return 0;
  check_places(output);
  return finish(simulate_given(given), output);
}

}  // namespace stratagem::tools
