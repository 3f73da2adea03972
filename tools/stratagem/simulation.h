// The result of `stratagem simulate`: printed, written and drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "strategies/schedules/schedule.h"
#include "strategies/schedules/timeline.h"

namespace CLI {
class App;
}

namespace stratagem::tools {

inline constexpr double mebibyte = 1024.0 * 1024.0;  // bytes

struct Simulation {
  std::string title;
  std::optional<schedules::Schedule> schedule = {};  // empty for replicas
  double ideal_bubble = 0;                           // of the schedule
  schedules::Timeline timeline;
  int devices = 1;
  std::optional<std::int64_t> peak_bytes = {};  // peak of the fullest device
};

/// The files to write; an empty name writes none. `out`: JSON, "-" for standard output; `trace`: a
/// trace for Perfetto; `chart`: a picture that ends in .png or .svg.
struct SimulationOutput {
  std::string out;
  std::string trace;
  std::string chart;
};

/// Returns the columns of the standard output, 100 if it is not a terminal.
int output_width();

/// Adds --chart.
void add_chart_option(CLI::App& app, std::string& chart);

/// Throws std::invalid_argument unless all can be written.
void check_places(const SimulationOutput& output);

/// Prints it unless the JSON goes to standard output, and writes the files. Returns the exit code;
/// does not return if a chart is wanted, which another program draws.
int finish(const Simulation& simulation, const SimulationOutput& output);

}  // namespace stratagem::tools
