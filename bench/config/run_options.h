// The options of `run` on the command line, and what they select together with a config file and
// a preset.
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

/// As typed; filled by CLI11 while the App lives.
struct RunOptions {
  std::map<std::string, std::string> values;  // by snake_case name, "8,12,24"
  std::string preset;                         // empty: none
  std::string config;                         // path; empty: none
  RunFiles files;
};

/// Registers every option, grouped, with its help. An option that `app` does not know ends its
/// parse with std::invalid_argument that names the nearest one. `options` must outlive `app`.
void add_run_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue);
/// Those of a row alone: without files, and without an option of the table for which `left_out` is
/// true.
void add_row_options(CLI::App& app, RunOptions& options, const Catalogue& catalogue,
                     const std::function<bool(const Option&)>& left_out = {});

/// Registers --preset and --config, which name where values come from, and --quiet.
void add_sources(CLI::App& app, RunOptions& options);

/// The command line over the config file over the preset; a sole `tutorial` protocol implies the
/// rest of that protocol. Reads the config file. Throws std::invalid_argument in one line.
Selection select(const RunOptions& options);
/// The command line over `preset`, which may be null.
Selection select(const RunOptions& options, const Preset* preset);

/// CLI11's error in one line that begins with the option.
std::string command_line_error(const CLI::ParseError& error);

}  // namespace stratagem::bench
