// Google Benchmark's flags, as far as they decide what is measured and where it is written.
//
// Its library applies a flag to the loop that it runs. Here the loop only replays what was
// measured, so the flags that choose rows, rounds and files are applied before. Releases of the
// library differ in the others that they know, so those are read here too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stratagem::bench {

/// How the library's console shows rows.
struct ConsoleFlags {
  std::optional<bool> color = {};  // none: as the terminal has it
  bool counters_tabular = false;
  std::string time_unit = "ms";  // ns, us, ms, s
  std::string verbosity = "0";

  bool operator==(const ConsoleFlags&) const = default;
};

struct BenchmarkFlags {
  std::string filter;  // regular expression, "-" in front leaves out what matches; empty: all
  bool list_tests = false;
  std::optional<std::int64_t> repetitions = {};
  std::optional<bool> random_interleaving = {};
  std::string format = "console";  // console, json, csv
  std::string out;                 // empty: none
  std::string out_format = "json";
  bool report_aggregates_only = false;
  bool display_aggregates_only = false;
  std::vector<std::pair<std::string, std::string>> context = {};

  ConsoleFlags console = {};
  std::vector<std::string> others = {};  // what is no flag of Google Benchmark
};

/// Also reads the environment as the library does: BENCHMARK_FILTER for --benchmark_filter.
/// Throws std::invalid_argument for a flag that is unknown or has no meaning here, and for a value
/// that is wrong.
BenchmarkFlags parse_benchmark_flags(const std::vector<std::string>& arguments);

/// The positions of the names that the filter lets through. Throws std::invalid_argument for a
/// broken expression.
std::vector<std::size_t> matching(const std::string& filter, const std::vector<std::string>& names);

}  // namespace stratagem::bench
