#include "tools/stratagem/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "bench/machine/terminal.h"
#include "bench/timing/breakdown.h"
#include "reports/atomic_file.h"
#include "reports/json_fields.h"
#include "reports/json_writer.h"
#include "reports/text_table.h"
#include "reports/trace_writer.h"
#include "reports/write_all.h"
#include "strategies/schedules/simulate.h"
#include "tools/stratagem/gantt_text.h"
#include "tools/stratagem/python.h"

namespace stratagem::tools {
namespace {

/// Returns that of the first device: replicas are alike.
reports::Breakdown breakdown_of_a_replica(const Simulation& simulation) {
  return bench::breakdown(simulation.timeline, 0, 1);
}

std::vector<reports::TimelineEvent> events_of(const schedules::Timeline& timeline) {
  std::vector<reports::TimelineEvent> events;
  for (const schedules::TimelineEntry& entry : timeline.entries) {
    events.push_back(bench::event_of(entry, entry.device));
  }
  return events;
}

nlohmann::ordered_json document_of(const Simulation& simulation) {
  nlohmann::ordered_json body;
  body["title"] = simulation.title;
  body["makespan_ms"] = simulation.timeline.step_ms;
  if (simulation.schedule) {
    body["steady_step_ms"] = schedules::steady_step_ms(simulation.timeline, simulation.devices);
  }
  body["bubble"] = schedules::idle_fraction(simulation.timeline, simulation.devices);
  if (!simulation.schedule) {
    const reports::Breakdown parts = breakdown_of_a_replica(simulation);
    body["communication_exposed_ms"] = parts.communication_exposed;
    body["communication_hidden_ms"] = parts.communication_hidden;
  }
  if (simulation.peak_bytes) body["peak_memory_bytes"] = *simulation.peak_bytes;
  body["timeline"] = reports::json_fields::json_of(events_of(simulation.timeline));
  return {{"schema", reports::results_schema}, {"simulation", body}};
}

void print_schedule(const Simulation& simulation, const schedules::Schedule& schedule) {
  fmt::print("of many   {:.6g} ms a step\n",
             schedules::steady_step_ms(simulation.timeline, schedule.devices()));
  fmt::print("bubble    {:.1f}% of the devices' time; ideal {:.1f}%\n",
             100 * schedules::idle_fraction(simulation.timeline, schedule.devices()),
             100 * simulation.ideal_bubble);
  fmt::print("peak live micro-batches by device  {}\n\n",
             fmt::join(schedules::peak_live_micro_batches(schedule), " "));
}

void print_replicas(const Simulation& simulation) {
  const reports::Breakdown parts = breakdown_of_a_replica(simulation);
  fmt::print("compute   {:.6g} ms, optimizer {:.6g} ms\n", parts.compute, parts.optimizer);
  fmt::print("transfers {:.6g} ms exposed, {:.6g} ms hidden behind the computation\n\n",
             parts.communication_exposed, parts.communication_hidden);
}

void print(const Simulation& simulation) {
  fmt::print("{}\n", simulation.title);
  fmt::print("makespan  {:.6g} ms\n", simulation.timeline.step_ms);
  if (simulation.schedule) {
    print_schedule(simulation, *simulation.schedule);
  } else {
    print_replicas(simulation);
  }
  if (simulation.peak_bytes) {
    fmt::print("memory    {} MiB at most on a device\n\n",
               reports::significant(static_cast<double>(*simulation.peak_bytes) / mebibyte, 4));
  }
  fmt::print("{}", gantt_text(simulation.timeline, simulation.devices, output_width()));
}

void require_chart_name(const std::string& chart) {
  if (chart.empty() || chart.ends_with(".png") || chart.ends_with(".svg")) return;
  throw std::invalid_argument(fmt::format("--chart: \"{}\" must end in .png or .svg", chart));
}

/// Hands the simulation to Python through a file in memory; does not return.
[[noreturn]] void draw(const nlohmann::ordered_json& document, const std::string& chart) {
  const std::string text = document.dump();
  const int fd = ::memfd_create("simulation", 0);  // inherited on purpose
  if (fd < 0 || reports::write_all(fd, text) != 0) {
    throw std::runtime_error("no memory for the chart's data");
  }
  become_python("gantt", {fmt::format("/proc/self/fd/{}", fd), "--out", chart});
}

}  // namespace

int output_width() {
  constexpr int of_a_file = 100;
  return bench::terminal_width(stdout).value_or(of_a_file);
}

void add_chart_option(CLI::App& app, std::string& chart) {
  app.add_option("--chart", chart, "write a Gantt chart to FILE (.png or .svg)")->type_name("FILE");
}

void check_places(const SimulationOutput& output) {
  require_chart_name(output.chart);
  reports::check_outputs({output.out, output.trace, output.chart});
}

int finish(const Simulation& simulation, const SimulationOutput& output) {
  if (output.out != "-") print(simulation);
  if (!output.trace.empty()) {
    const reports::TraceProcess process{simulation.title, events_of(simulation.timeline)};
    reports::write_trace(output.trace, {&process, 1});
  }
  if (output.out.empty() && output.chart.empty()) return 0;
  const nlohmann::ordered_json document = document_of(simulation);
  if (!output.out.empty()) reports::write_file_atomically(output.out, document.dump(1) + "\n");
  if (!output.chart.empty()) draw(document, output.chart);
  return 0;
}

}  // namespace stratagem::tools
