#include "bench/benchmark_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "bench/benchmark_flags.h"
#include "bench/benchmark_replay.h"
#include "bench/environment.h"
#include "bench/grid.h"
#include "bench/guarded_main.h"
#include "bench/join.h"
#include "bench/partial_file.h"
#include "bench/registered_catalogue.h"
#include "bench/row_name.h"
#include "bench/run_options.h"
#include "bench/worker_main.h"
#include "reports/atomic_file.h"
#include "reports/json_writer.h"
#include "reports/trace_writer.h"

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

/// The rows of all grids, each once.
NamedRows rows_of(const BenchmarkProgram& program, const Selection& asked,
                  const Catalogue& catalogue, const Invitation* invited) {
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
    std::vector<Config> configs = make_grid(selection, catalogue);
    if (invited != nullptr) fit_rows(configs, *invited);
    for (const Config& config : configs) {
      std::string name = row_name(config, catalogue);
      if (!seen.insert(name).second) continue;
      rows.configs.push_back(config);
      rows.names.push_back(std::move(name));
    }
  }
  return rows;
}

NamedRows filtered(const NamedRows& rows, const std::string& filter) {
  NamedRows kept;
  for (const std::size_t index : matching(filter, rows.names)) {
    kept.configs.push_back(rows.configs[index]);
    kept.names.push_back(rows.names[index]);
  }
  return kept;
}

/// Results as JSON with the flags' context, and without single runs where only aggregates are
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

/// Rows that have something to show: after an interrupt not all do.
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
  for (const std::string& path : {out, selection.files.trace}) {
    if (!path.empty()) reports::check_writable(path);
  }
  Progress progress(Progress::style(selection.files.quiet));
  const MeasureEnvironment environment =
      make_environment(registered_catalogue(), interrupt, progress, /*verbose=*/false, cluster);
  MeasureOptions options;
  options.command_line = command_line;
  if (out != "-") options.out = out;
  options.resume = selection.files.resume;
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
    write_out(out, measurement.results, flags, replayed);
    if (options.trace) reports::write_trace(selection.files.trace, measurement.traces);
  } else if (!options.out.empty()) {
    fmt::print(stderr, "{}: interrupted; the same command with --resume goes on from {}\n",
               program.name, partial_path(options.out).string());
  }
  return exit_code(measurement);
}

int perform(const std::vector<std::string>& arguments, const BenchmarkProgram& program) {
  const Catalogue catalogue = registered_catalogue();
  const BenchmarkFlags flags = parse_benchmark_flags(arguments);
  CLI::App app(program.summary +
                   "\n\nTakes Google Benchmark's --benchmark_* flags (filter, list_tests, "
                   "repetitions, out, format, ...)\nand the options of `stratagem run`:",
               program.name);
  RunOptions typed;
  add_run_options(app, typed, catalogue);
  JoinOptions joining;
  add_join_options(app, joining);
  try {
    app.parse(std::vector<std::string>(flags.others.rbegin(), flags.others.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return exit_codes::done;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(first_line(error.what()));
  }
  Selection selection = select(typed);
  apply(flags, selection);
  const auto invited = invitation(joining, runtime::process_environment);
  if (invited) fit_to_world(selection, *invited);
  const NamedRows rows =
      filtered(rows_of(program, selection, catalogue, invited ? &*invited : nullptr), flags.filter);
  const bool tells = !invited || invited->place.rank == 0;
  if (rows.names.empty()) {
    if (tells)
      fmt::print(stderr, "{}: no row matches \"{}\"; --benchmark_list_tests shows their names\n",
                 program.name, flags.filter);
    return exit_codes::nothing_matched;
  }
  if (flags.list_tests) {
    if (tells) fmt::print("{}\n", fmt::join(rows.names, "\n"));
    return exit_codes::done;
  }
  const Interrupt interrupt;
  std::unique_ptr<Cluster> cluster;
  if (invited) {
    cluster =
        join(*invited, timeout_of(selection), interrupt, /*verbose=*/false, runtime::open_meeting);
    if (invited->place.rank > 0) return cluster->follow();
  }
  const auto body = [&] {
    return measure_and_report(program, rows, selection, flags,
                              fmt::format("{} {}", program.name, fmt::join(arguments, " ")),
                              interrupt, cluster.get());
  };
  return cluster ? cluster->lead(body) : body();
}

}  // namespace

int benchmark_main(int argc, char** argv, const BenchmarkProgram& program) {
  if (is_worker_call(argc, argv)) worker_main(argc, argv);
  return guarded_main(program.name, [&] {
    return perform(std::vector<std::string>(argv + 1, argv + argc), program);
  });
}

}  // namespace stratagem::bench
