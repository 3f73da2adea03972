// The options of `run` on the command line, and their selection together with a config file and a
// preset.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "bench/config/catalogue.h"
#include "bench/config/config.h"
#include "bench/config/selection.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace stratagem::bench {

struct Preset;

/// The group of the help for options about files.
inline constexpr const char* file_group = "Files and output";

/// The options as typed; CLI11 fills them while the App lives.
struct RunOptions {
  std::map<std::string, std::string> values;  // by snake_case name, "8,12,24"
  std::string preset;                         // empty: none
  std::string config;                         // path; empty: none
  RunFiles files;
};

/// Registers every option, grouped, with its help. An unknown option ends the parse of `app` with
/// std::invalid_argument that names the nearest one. `options` must outlive `app`.
void add_run_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue);
/// Registers only the options of a row: no files, and no option for which `left_out` is true.
void add_row_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue,
                     const std::function<bool(const Option&)>& left_out = {});

/// Registers --preset and --config, which name where values come from, and --quiet.
void add_sources(CLI::App& app, RunOptions& options);

/// Prefers the command line to the config file, which it reads, and that to the preset; a sole
/// `tutorial` protocol implies the rest of it. Throws std::invalid_argument in one line.
Selection select(const RunOptions& options);
/// Prefers the command line to `preset`, which may be null.
Selection select(const RunOptions& options, const Preset* preset);

/// Returns CLI11's error in one line that begins with the option.
std::string command_line_error(const CLI::ParseError& error);

/// Refuses "--flag=", for which the library would take the next argument as the value, and values
/// of switches except true and false: the library takes every number for true.
void require_values(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace stratagem::bench
