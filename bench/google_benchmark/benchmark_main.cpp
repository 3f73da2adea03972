#include "bench/google_benchmark/benchmark_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "bench/config/catalogue.h"
#include "bench/config/grid.h"
#include "bench/config/placement.h"
#include "bench/config/plugins.h"
#include "bench/config/row_name.h"
#include "bench/config/run_options.h"
#include "bench/google_benchmark/command_line.h"
#include "bench/google_benchmark/replay.h"
#include "bench/launch/exit_codes.h"
#include "bench/measure/environment.h"
#include "bench/measure/partial_file.h"
#include "bench/worker/worker_main.h"
#include "reports/atomic_file.h"
#include "reports/json_writer.h"
#include "reports/trace_writer.h"
#include "strategies/distributed/c10d_store.h"
#include "strategies/runtime/print_line.h"

namespace stratagem::bench {

namespace {

struct NamedRows {
  std::vector<Config> configs;
  std::vector<std::string> names;
};

void apply(const BenchmarkFlags& flags, Selection& selection) {
  const auto set = [&](const std::string& option, const std::string& text, const char* flag) {
    selection.options[option] = Chosen{{text}, Origin::command_line, flag};
  };
  if (flags.repetitions) {
    set("repetitions", std::to_string(*flags.repetitions), "--benchmark_repetitions");
  }
  if (flags.random_interleaving) {
    set("order", *flags.random_interleaving ? "random" : "block",
        "--benchmark_enable_random_interleaving");
  }
}

/// Returns whether the strategy can train the model on the requested devices.
bool fits(const Config& config, const Catalogue& catalogue) {
  try {
    return can_train(config, catalogue);
  } catch (const std::invalid_argument&) {  // it cannot spread over these devices
    return false;
  }
}

/// Returns the rows of every registered strategy that fits.
std::vector<Config> rows_of_every_strategy(Selection selection, const Catalogue& catalogue,
                                           std::int64_t baseline_cores) {
  Chosen& every = selection.options["strategy"];
  every.origin = Origin::preset;
  for (const strategies::StrategyEntry& strategy : catalogue.strategies)
    every.texts.push_back(strategy.name);
  std::vector<Config> configs = make_grid(selection, catalogue, baseline_cores);
  std::erase_if(configs, [&](const Config& config) { return !fits(config, catalogue); });
  return configs;
}

/// Returns the rows of all grids, each once.
NamedRows rows_of(const BenchmarkProgram& program, const Selection& asked,
                  const Catalogue& catalogue, const LauncherSession& session) {
  NamedRows rows;
  std::set<std::string> seen;
  for (const OptionValues& grid : program.grids) {
    Selection selection = asked;
    for (const auto& [option, text] : grid) {
      const bool other_batch =
          option == "global_batch_size" && selection.options.contains(per_device_batch_size);
      if (other_batch) continue;
      selection.options.try_emplace(
          option, Chosen{CLI::detail::split(text, ','), Origin::preset, program.name});
    }
    std::vector<Config> configs =
        selection.options.contains("strategy")
            ? make_grid(selection, catalogue, session.baseline_cores())
            : rows_of_every_strategy(selection, catalogue, session.baseline_cores());
    session.fit(configs);
    for (const Config& config : configs) {
      std::string name = row_name(config, catalogue);
      if (!seen.insert(name).second) continue;
      rows.configs.push_back(config);
      rows.names.push_back(std::move(name));
    }
  }
  return rows;
}

/// Counts the rows of all grids as one table.
void settle_repetitions(std::vector<Config>& rows) {
  for (Config& row : rows) row.repetitions = rounds_of_table(rows.size());
}

NamedRows filtered(const NamedRows& rows, const std::string& filter) {
  NamedRows kept;
  for (const std::size_t index : matching(filter, rows.names)) {
    kept.configs.push_back(rows.configs[index]);
    kept.names.push_back(rows.names[index]);
  }
  return kept;
}

/// Returns results as JSON with the flags' context, and without single runs if only aggregates are
/// wanted.
nlohmann::ordered_json document_of(const reports::ResultFile& results, const BenchmarkFlags& flags,
                                   bool aggregates_only) {
  nlohmann::ordered_json document = reports::results_json(results);
  for (const auto& [key, value] : flags.context) document["context"][key] = value;
  if (!aggregates_only) return document;
  std::set<std::string> aggregated;
  for (const auto& run : document["benchmarks"]) {
    if (run["run_type"] == "aggregate") aggregated.insert(run["run_name"]);
  }
  auto kept = nlohmann::ordered_json::array();
  for (const auto& run : document["benchmarks"]) {
    if (run["run_type"] == "aggregate" || !aggregated.contains(run["run_name"]))
      kept.push_back(run);
  }
  document["benchmarks"] = kept;
  return document;
}

void write_out(const std::string& out, const reports::ResultFile& results,
               const BenchmarkFlags& flags, const std::string& replayed) {
  if (out.empty()) return;
  const std::string text =
      flags.out_format == "json"
          ? document_of(results, flags, flags.report_aggregates_only).dump(1) + "\n"
          : replayed;
  reports::write_file_atomically(out, text);
  std::error_code ignored;
  std::filesystem::remove(partial_path(out), ignored);
}

/// Returns the rows with a result: after an interrupt some have none.
std::vector<reports::Row> rows_with_results(const reports::ResultFile& results) {
  std::vector<reports::Row> rows;
  for (const reports::Row& row : results.rows) {
    if (!row.repetitions.empty()) rows.push_back(row);
  }
  return rows;
}

int measure_and_report(const BenchmarkProgram& program, const NamedRows& rows,
                       const Selection& selection, const BenchmarkFlags& flags,
                       const std::string& command_line, const Interrupt& interrupt,
                       Cluster* cluster) {
  const std::string out = flags.out.empty() ? selection.files.out : flags.out;
  if (selection.files.resume && (out.empty() || out == "-")) {
    throw std::invalid_argument("--resume needs the --out FILE of the interrupted run");
  }
  reports::check_outputs({out, selection.files.trace});
  Progress progress(Progress::style(selection.files.quiet));
  const MeasureEnvironment environment = make_environment(
      registered_catalogue(), interrupt, progress, /*verbose=*/false, worker_main, cluster);
  MeasureOptions options;
  options.command_line = command_line;
  if (out != "-") options.out = out;
  options.resume = selection.files.resume;
  options.anonymous = selection.files.anonymous;
  options.trace = !selection.files.trace.empty();
  Measurement measurement = measure(rows.configs, options, environment, progress);
  progress.finish();

  measurement.results.rows = rows_with_results(measurement.results);
  const std::string replayed = replay(measurement.results.rows, flags, program.name);
  if (flags.format == "json") {
    const bool aggregates_only = flags.report_aggregates_only || flags.display_aggregates_only;
    fmt::print("{}\n", document_of(measurement.results, flags, aggregates_only).dump(1));
  }
  if (!measurement.interrupted) {
    write_what_was_measured([&] { write_out(out, measurement.results, flags, replayed); },
                            where_launches_stay(measurement, out));
    if (options.trace) {
      write_what_was_measured(
          [&] { reports::write_trace(selection.files.trace, measurement.traces); });
    }
  } else if (!options.out.empty()) {
    runtime::print_line(stderr, fmt::format("{}: interrupted; the same command with --resume "
                                            "continues from {}",
                                            program.name, partial_path(options.out).string()));
  }
  return exit_code(measurement);
}

int perform(const std::vector<std::string>& arguments, const BenchmarkProgram& program) {
  const Catalogue catalogue = registered_catalogue();
  const BenchmarkFlags flags = parse_benchmark_flags(arguments);
  CLI::App app(description_of(program.name) + "\nand the options of `stratagem run`.",
               program.name);
  RunOptions typed;
  add_run_options(app, typed, catalogue);
  LauncherOptions launcher;
  add_launcher_options(app, launcher);
  add_plugin_option(app);
  if (!parse(app, flags)) return exit_codes::done;
  Selection selection = select(typed);
  apply(flags, selection);
  const LauncherSession session(launcher);
  session.fit(selection);
  NamedRows rows = filtered(rows_of(program, selection, catalogue, session), flags.filter);
  if (!selection.options.contains("repetitions")) settle_repetitions(rows.configs);
  if (const auto code = list_rows(program.name, flags, rows.names, session)) return *code;
  const RendezvousSettings settings{.open = distributed::connect_store,
                                    .timeout = rows.configs.front().timeout};
  return session.run(settings, [&](const Interrupt& interrupt, Cluster* cluster) {
    return measure_and_report(program, rows, selection, flags,
                              fmt::format("{} {}", program.name, fmt::join(arguments, " ")),
                              interrupt, cluster);
  });
}

}  // namespace

int benchmark_main(int argc, char** argv, const BenchmarkProgram& program) {
  return program_main(argc, argv, program.name, [&](const std::vector<std::string>& arguments) {
    return perform(arguments, program);
  });
}

}  // namespace stratagem::bench
