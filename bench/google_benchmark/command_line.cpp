#include "bench/google_benchmark/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "bench/config/run_options.h"
#include "bench/launch/exit_codes.h"
#include "bench/machine/help_page.h"

namespace stratagem::bench {

std::string description_of(std::string_view program) {
  const auto found = std::ranges::find(benchmark_programs(), program, &BenchmarkProgramFacts::name);
  if (found == benchmark_programs().end()) {
    throw std::logic_error(fmt::format("{}: no file of this name in bench/programs/", program));
  }
  return found->summary +
         "\n\nTakes Google Benchmark's --benchmark_* flags too (filter, list_tests, repetitions, "
         "out, format, ...)";
}

bool parse(CLI::App& app, const BenchmarkFlags& flags) {
  require_values(app, flags.others);
  try {
    app.parse(std::vector<std::string>(flags.others.rbegin(), flags.others.rend()));
    return true;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_page(app));
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(command_line_error(error));
  }
}

std::optional<int> list_rows(const std::string& program, const BenchmarkFlags& flags,
                             const std::vector<std::string>& names,
                             const LauncherSession& session) {
  if (names.empty()) {
    return session.nothing_matched(
        fmt::format("{}: no row matches \"{}\"; --benchmark_list_tests shows their names", program,
                    flags.filter));
  }
  if (!flags.list_tests) return std::nullopt;
  if (session.is_first()) fmt::print("{}\n", fmt::join(names, "\n"));
  return exit_codes::done;
}

}  // namespace stratagem::bench
