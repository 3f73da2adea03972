// The command line of a benchmark program: Google Benchmark's flags, options of its own, and what
// becomes of rows that are listed, filtered or not there.
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

/// All benchmark programs, by name.
const std::vector<BenchmarkProgramFacts>& benchmark_programs();

/// The help's first lines: the program's summary, and Google Benchmark's flags. Throws
/// std::logic_error for a name that no file has.
std::string description_of(std::string_view program);

/// Reads what is not Google Benchmark's. False when help was asked for, which is then printed.
/// Throws std::invalid_argument, one line.
bool parse(CLI::App& app, const BenchmarkFlags& flags);

/// The exit code where there is nothing to measure: no row matches the filter, or their names are
/// all that is wanted.
std::optional<int> list_rows(const std::string& program, const BenchmarkFlags& flags,
                             const std::vector<std::string>& names, const LauncherSession& session);

}  // namespace stratagem::bench
