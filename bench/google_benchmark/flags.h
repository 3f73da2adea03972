// Google Benchmark's flags, as far as they decide what is measured and where it is written.
//
// Its library applies a flag to the loop that it runs. Here the loop only replays what was
// measured, so the flags that choose rows, rounds and files are applied before. Releases of the
// library differ in their other flags, so those are read here too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stratagem::bench {

/// Flags of the library's console.
struct ConsoleFlags {
  std::optional<bool> color = {};  // none: if the terminal has color
  bool counters_tabular = false;
  std::string time_unit = "ms";  // ns, us, ms, s
  std::string verbosity = "0";

  bool operator==(const ConsoleFlags&) const = default;
};

struct BenchmarkFlags {
  std::string filter;  // regular expression; a leading "-" excludes matches; empty: all
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
  std::vector<std::string> others = {};  // all further arguments
};

/// The treatment of flags that are unknown, or have no meaning if rows are replayed.
enum class OtherFlags { refused, kept };

/// Also reads the environment as the library does: BENCHMARK_FILTER for --benchmark_filter. Throws
/// std::invalid_argument for a wrong value, and for other flags unless they are kept in `others`.
BenchmarkFlags parse_benchmark_flags(const std::vector<std::string>& arguments,
                                     OtherFlags other_flags = OtherFlags::refused);

/// Returns whether --benchmark_NAME is a flag of the library.
bool is_known_flag(const std::string& flag);

/// Returns the error of a flag that is not known.
std::string unknown_flag(const std::string& flag);

/// Returns the positions of the names that match the filter. Throws std::invalid_argument for a
/// broken expression.
std::vector<std::size_t> matching(const std::string& filter, const std::vector<std::string>& names);

}  // namespace stratagem::bench
