// stratagem run: measures a grid of configurations, prints the table and leaves the files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/launch/launcher_session.h"
#include "bench/machine/terminal.h"
#include "bench/measure/environment.h"
#include "bench/measure/measure.h"
#include "bench/measure/partial_file.h"
#include "bench/worker/worker_main.h"
#include "reports/atomic_file.h"
#include "reports/console_table.h"
#include "reports/json_writer.h"
#include "reports/row_summary.h"
#include "reports/trace_writer.h"
#include "strategies/distributed/c10d_store.h"
#include "strategies/runtime/print_line.h"
#include "tools/stratagem/parse.h"

namespace stratagem::tools {
namespace {

constexpr const char* examples =
    "\nExamples:\n"
    "  # Compare a pipeline of two devices with one device\n"
    "  stratagem run --strategy single,pipeline --devices 2 --split-size 4,8,12 --out r.json\n\n"
    "  # Compare pipeline schedules on a GPT\n"
    "  stratagem run --strategy pipeline --schedule 1f1b,zb_h1,zb_v --model gpt-small "
    "--devices 2\n\n"
    "  # Combine data and pipeline parallelism on four devices\n"
    "  stratagem run --strategy pipeline --mesh data=2/pipeline=2 --devices 4";

std::string command_line(const Arguments& arguments) {
  return fmt::format("stratagem run{}{}", arguments.empty() ? "" : " ", fmt::join(arguments, " "));
}

/// Returns false for a pipe or a device: nothing beside it holds unfinished results.
bool keeps_unfinished(const std::string& out) {
  if (out.empty() || out == "-") return false;
  struct stat status {};
  return ::stat(out.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

void require_places(const bench::RunFiles& files) {
  if (files.resume && !keeps_unfinished(files.out)) {
    throw std::invalid_argument("--resume needs the --out FILE of the interrupted run");
  }
  reports::check_outputs({files.out, files.trace});
}

reports::TableStyle table_style() {
  reports::TableStyle style;
  style.terminal = bench::has_color(stdout);
  style.width = bench::terminal_width(stdout).value_or(style.width);
  return style;
}

void print_table(const bench::Measurement& measurement, std::FILE* out) {
  std::vector<reports::Row> rows;
  for (const reports::Row& row : measurement.results.rows) {
    if (!row.repetitions.empty()) rows.push_back(row);
  }
  if (!rows.empty()) std::fputs(reports::console_table(rows, table_style()).c_str(), out);
  std::fflush(out);
}

void tell_how_to_resume(const bench::Measurement& measurement, const std::string& out) {
  const std::string counted =
      fmt::format("interrupted: {} of {} launches are finished", measurement.finished_launches,
                  measurement.planned_launches);
  if (keeps_unfinished(out)) {
    runtime::print_line(stderr,
                        fmt::format("stratagem: {} and kept in {}; the same command with --resume "
                                    "continues",
                                    counted, bench::partial_path(out).string()));
  } else {
    runtime::print_line(
        stderr, fmt::format("stratagem: {}; with --out FILE they would have been kept", counted));
  }
}

/// Prints the failures that no progress line has reported.
void tell_failures(const bench::Measurement& measurement) {
  for (const reports::Row& row : measurement.results.rows) {
    for (const reports::Repetition& repetition : row.repetitions) {
      if (!repetition.error) continue;
      runtime::print_line(stderr,
                          fmt::format("{}: {}", row.name, reports::describe(*repetition.error)));
    }
  }
}

void write_results(const bench::Measurement& measurement, const std::string& out) {
  if (keeps_unfinished(out)) return bench::write_results_and_clean_up(out, measurement.results);
  try {
    reports::write_results(out, measurement.results);
  } catch (const std::system_error&) {
    if (out == "-") print_table(measurement, stderr);
    throw;
  }
}

void write_files(const bench::Measurement& measurement, const bench::RunFiles& files) {
  if (!files.out.empty()) {
    bench::write_what_was_measured([&] { write_results(measurement, files.out); },
                                   bench::where_launches_stay(measurement, files.out));
  }
  if (!files.trace.empty()) {
    bench::write_what_was_measured([&] { reports::write_trace(files.trace, measurement.traces); });
  }
}

/// Returns the row of that name, or else those whose names contain the text.
std::vector<bench::Config> chosen_rows(const std::vector<bench::Config>& rows,
                                       const std::string& text, const bench::Catalogue& catalogue) {
  std::vector<bench::Config> exact;
  std::vector<bench::Config> containing;
  for (const bench::Config& row : rows) {
    const std::string name = bench::row_name(row, catalogue);
    if (name == text) exact.push_back(row);
    if (name.find(text) != std::string::npos) containing.push_back(row);
  }
  return exact.empty() ? containing : exact;
}

struct Call {
  const Arguments& arguments;
  bool verbose = false;
  std::string turns = {};
};

/// Requires one launch of one row whose steps are timed one by one.
void require_turns(const std::vector<bench::Config>& rows, bool alone) {
  const bench::Config& row = rows.front();
  if (rows.size() == 1 && row.repetitions == 1 && row.protocol != "tutorial" && alone) return;
  throw std::invalid_argument(
      "--turns: expected one row (see --only), --repetitions 1, no launcher, and not --protocol "
      "tutorial");
}

int measure(const std::vector<bench::Config>& rows, const bench::Selection& selection,
            const Call& call, const bench::Interrupt& interrupt, bench::Cluster* cluster) {
  const bench::RunFiles& files = selection.files;
  bench::Progress progress(bench::Progress::style(files.quiet));
  const bench::MeasureEnvironment environment =
      bench::make_environment(bench::registered_catalogue(), interrupt, progress, call.verbose,
                              bench::worker_main, cluster);
  bench::MeasureOptions options;
  options.command_line = command_line(call.arguments);
  if (keeps_unfinished(files.out)) options.out = files.out;
  options.resume = files.resume;
  options.anonymous = files.anonymous;
  options.trace = !files.trace.empty();
  options.turns = call.turns;
  const bench::Measurement measurement = bench::measure(rows, options, environment, progress);
  if (const std::string& failure = environment.cache.failure(); !failure.empty()) {
    progress.note(fmt::format("{}; the next run verifies and calibrates again", failure));
  }
  progress.finish();

  if (files.quiet) tell_failures(measurement);
  if (files.out != "-") print_table(measurement, stdout);
  if (measurement.interrupted) {
    tell_how_to_resume(measurement, files.out);
  } else {
    write_files(measurement, files);
  }
  return bench::exit_code(measurement);
}

}  // namespace

int run(const Arguments& arguments) {
  const bench::Catalogue catalogue = bench::registered_catalogue();
  CLI::App app(
      "Measures one configuration, or every combination of the comma-separated values of options.",
      "stratagem run");
  app.footer(examples);
  bench::RunOptions typed;
  bench::add_run_options(app, typed, catalogue);
  std::string turns;  // a socket that permits one step at a time; only `compare` gives it
  app.add_option("--turns", turns)->group("");
  bench::LauncherOptions launcher;
  bench::add_launcher_options(app, launcher);
  bool verbose = false;
  app.add_flag("--verbose", verbose, "show the output of the workers")->group(bench::file_group);
  std::string only;
  app.add_option("--only", only,
                 "measure only the row of this name, or the rows whose names contain it")
      ->group("Measurement")
      ->type_name("NAME");
  if (!parse(app, arguments)) return 0;

  bench::Selection selection = bench::select(typed);
  const bench::LauncherSession session(launcher);
  session.fit(selection);
  std::vector<bench::Config> rows =
      bench::make_grid(selection, catalogue, session.baseline_cores());
  session.fit(rows);
  if (!only.empty()) {
    const std::string first = bench::row_name(rows.front(), catalogue);
    rows = chosen_rows(rows, only, catalogue);
    if (rows.empty()) {
      return session.nothing_matched(fmt::format(
          "stratagem: --only {}: no row's name contains it; the first is {}", only, first));
    }
  }
  if (!turns.empty()) require_turns(rows, session.is_alone());

  const bench::RendezvousSettings settings{
      .open = distributed::connect_store, .timeout = rows.front().timeout, .verbose = verbose};
  return session.run(settings, [&](const bench::Interrupt& interrupt, bench::Cluster* cluster) {
    require_places(selection.files);
    return measure(rows, selection, {arguments, verbose, turns}, interrupt, cluster);
  });
}

}  // namespace stratagem::tools
