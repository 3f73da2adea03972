// Reads the command line of a benchmark program: Google Benchmark's flags and options of its own.
// Lists its rows.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/google_benchmark/flags.h"
#include "bench/launch/launcher_session.h"

namespace stratagem::bench {

/// A program's file in bench/programs/: its name, and its first line as a summary.
struct BenchmarkProgramFacts {
  std::string name;
  std::string summary;
};

/// Returns all benchmark programs, by name.
const std::vector<BenchmarkProgramFacts>& benchmark_programs();

/// Returns the help's first lines: the program's summary, and Google Benchmark's flags. Throws
/// std::logic_error for a name without a file.
std::string description_of(std::string_view program);

/// Reads the options that are not Google Benchmark's. Returns false after printing a requested
/// help. Throws std::invalid_argument, one line.
bool parse(CLI::App& app, const BenchmarkFlags& flags);

/// Returns the exit code if there is nothing to measure: no row matches the filter, or only the
/// names are wanted.
std::optional<int> list_rows(const std::string& program, const BenchmarkFlags& flags,
                             const std::vector<std::string>& names, const LauncherSession& session);

}  // namespace stratagem::bench
